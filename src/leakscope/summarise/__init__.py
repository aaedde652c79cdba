"""Recording in, the parts of a report that are not verdicts out: processes, peak, ending, notes."""
