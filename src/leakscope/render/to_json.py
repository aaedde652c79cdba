"""Report → report.json, the machine's view; its schema is docs/report-schema.json."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from leakscope.model import Report
from leakscope.render.style import Style


def render(report: Report, style: Style) -> str:
    """The whole report. A number that is not finite becomes null."""
    try:
        data = msgspec.json.encode(report, enc_hook=_number)
    except UnicodeEncodeError:
        # File names that are not valid UTF-8 reach us as lone surrogates.
        data = msgspec.json.encode(_encodable(msgspec.to_builtins(report, enc_hook=_number)))
    return msgspec.json.format(data, indent=2).decode() + "\n"


def read(document: str | bytes) -> Report:
    """The report a document was made from; null where a number must be reads as NaN."""
    try:
        return msgspec.json.decode(document, type=Report)
    except msgspec.ValidationError:
        return msgspec.convert(_fill(msgspec.json.decode(document), Report), Report)


def _number(value: Any) -> Any:
    """numpy's scalars are numbers too, though msgspec does not know them."""
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value)} has no place in a report")


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def _fill(value: Any, kind: Any) -> Any:
    """`value` with NaN where the model wants a float and the document has null."""
    info = kind if isinstance(kind, msgspec.inspect.Type) else msgspec.inspect.type_info(kind)
    if value is None and isinstance(info, msgspec.inspect.FloatType):
        return math.nan
    if isinstance(info, msgspec.inspect.UnionType) and value is not None:
        info = next(t for t in info.types if not isinstance(t, msgspec.inspect.NoneType))
    if isinstance(info, msgspec.inspect.StructType) and isinstance(value, dict):
        kinds = {field.encode_name: field.type for field in info.fields}
        return {
            key: _fill(item, kinds[key]) if key in kinds else item for key, item in value.items()
        }
    if isinstance(info, msgspec.inspect.VarTupleType) and isinstance(value, list):
        return [_fill(item, info.item_type) for item in value]
    if isinstance(info, msgspec.inspect.DictType) and isinstance(value, dict):
        return {key: _fill(item, info.value_type) for key, item in value.items()}
    return value
