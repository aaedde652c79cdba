/* The heap walker: writes every object, its size and what it refers to, to a file.

   The file is described in docs/recording-format.md ("LSHEAP01"); leakscope/record/snapshot_file.py
   names its constants. `leakscope.observe.heap.twin` does the same in Python, more slowly.

   What it promises the program it runs in:
   - The GIL is held from the first object to the last, automatic collection is paused, and no code of
     the program runs: `tp_traverse` and a few `__sizeof__` of CPython's own types are all it calls.
   - It changes no reference count for longer than the walk and makes no `__dict__`.
   - Its working memory comes from mmap and goes back before it returns: malloc's counters do not move.
   - It writes names, types, sizes and addresses: never a value.

   It reads public structs only, except for three layouts that CPython keeps to itself: the key table
   of a dict, the inline attributes of an instance, and (3.11) the links between tracked objects.
   Those are checked against the truth when the module is imported; where the check fails the walker
   does without them. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AT_LEAST(minor) (PY_VERSION_HEX >= (0x03000000 | ((minor) << 16)))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- The format ------------------------------------------------------------------------------ */

#define LABELLED (1ull << 63)
#define TRACKED (1ull << 62)
#define NAMESPACE_DICT (1ull << 61)
#define CLASS_OBJECT (1ull << 60)
#define MODULE_OBJECT (1ull << 59)
#define IMMORTAL (1ull << 58)
#define SIZE_MASK ((1ull << 48) - 1)
#define SHORTCUT (1ull << 55)
#define NAME_MASK ((1ull << 48) - 1)

enum {
    ROLE_ITEM = 0, ROLE_KEY, ROLE_TYPE, ROLE_NAMESPACE, ROLE_ATTRIBUTE, ROLE_NAME, ROLE_CELL,
    ROLE_CLOSURE, ROLE_CLOSURE_TUPLE, ROLE_DEFAULT, ROLE_GLOBALS, ROLE_CODE, ROLE_SELF,
    ROLE_FUNCTION, ROLE_LOCAL, ROLE_TRACEBACK, ROLE_FRAME, ROLE_BACK, ROLE_CONTEXT, ROLE_CAUSE,
    ROLE_ARGS, ROLE_BASE, ROLE_ELEMENT, ROLE_CLASS_LINK, ROLE_CALLBACK
};
#define ROLE(role) ((uint64_t)ROLE_##role << 56)

/* The longest name that is written, in characters. */
#define LONGEST_NAME 100
/* The longest name of a class or its module that is written, in bytes. */
#define LONGEST_TYPE_NAME 400

/* ---- Layouts that CPython does not publish ----------------------------------------------------- */

/* The key table of a dict, the same in 3.11 to 3.14. */
typedef struct {
    Py_ssize_t refcnt;
    uint8_t log2_size;
    uint8_t log2_index_bytes;
    uint8_t kind;
    uint32_t version;
    Py_ssize_t usable;
    Py_ssize_t nentries;
    char indices[];
} Keys;

#define GENERAL_KEYS 0

typedef struct { Py_hash_t hash; PyObject *key, *value; } GeneralEntry;
typedef struct { PyObject *key, *value; } UnicodeEntry;

#if AT_LEAST(13)
/* The values of a split dict; `embedded` if they stand in the instance itself. */
typedef struct {
    uint8_t capacity, size, embedded, valid;
    PyObject *values[1];
} Values;
#else
typedef struct { PyObject *values[1]; } Values;
#endif

#if !AT_LEAST(14)
#define HAS_LINKS
#endif

/* The collector's lists, the same in 3.11 to 3.13: each tracked object has two words in front of it,
   the next and the previous one (whose lowest two bits are flags). */
typedef struct { uintptr_t next, prev; } Link;
typedef struct { Link head; int threshold, count; } Generation;
typedef struct { Generation generations[3]; Link *generation0; Generation permanent; } Generations;

static Generations *generations; /* NULL if they were not found where they should be */

static inline void *entries_of(Keys *keys)
{
    return keys->indices + ((size_t)1 << keys->log2_index_bytes);
}

static inline size_t keys_bytes(Keys *keys)
{
    size_t usable = ((size_t)1 << keys->log2_size) * 2 / 3;
    size_t entry = keys->kind == GENERAL_KEYS ? sizeof(GeneralEntry) : sizeof(UnicodeEntry);
    return sizeof(Keys) + ((size_t)1 << keys->log2_index_bytes) + usable * entry;
}

/* Set when the module is imported, by comparing what the layouts give with the truth. */
static bool dicts_ok;      /* key tables and the sizes of dicts */
static bool attributes_ok; /* inline attributes */
static bool functions_ok;  /* which fields of a function traverse shows */
static bool locals_ok;     /* where the local variables of a generator stand */

/* ---- Working memory ---------------------------------------------------------------------------- */

/* A growing array of addresses, outside malloc. */
typedef struct { uintptr_t *at; size_t n, room; } Words;

typedef struct Block {
    struct Block *next;
    size_t bytes, used;
} Block;

#define BLOCK_BYTES (1u << 20)

/* One bit for each 16 bytes of 16 MiB of address space. Two objects are never nearer than that. */
#define REGION_BITS 24
#define REGION_WORDS ((1u << (REGION_BITS - 4)) / 64)

typedef struct {
    uint64_t *seen;                   /* objects that are written or wait to be */
    uint64_t namespace[REGION_WORDS]; /* dicts that are a namespace */
    uint64_t named[REGION_WORDS];     /* strings that are a name in some label */
    uint64_t told[REGION_WORDS];      /* texts of code that are written */
    uint64_t lent[REGION_WORDS];      /* objects that `extra` refers to */
    uint64_t listed[REGION_WORDS];    /* objects that gc.get_objects() refers to */
} Region;

typedef struct { uintptr_t key; Region *region; } RegionSlot;

#define NEAR 64

/* ---- What is known about a type ---------------------------------------------------------------- */

typedef enum {
    LEAF,       /* refers to nothing that can be seen */
    STREAM,     /* traversed; none of its references has a label */
    LIST,
    TUPLE,
    DICT,
    FUNCTION_FIELDS,
    MATCHED,    /* traversed; references are labelled by matching */
} Walking;

typedef enum {
    NO_SHAPE, MAPPING, FUNCTION, CELL, METHOD, BUILTIN_METHOD, CLASS, FRAME, GENERATOR, TRACEBACK,
    EXCEPTION, WEAK_REFERENCE, MODULE, CODE
} Shape;

typedef enum {
    BASIC, ITEMS, SIZE_LIST, SIZE_DICT, SIZE_SET, SIZE_STR, SIZE_BYTEARRAY, SIZE_INT, SIZE_CLASS,
    SIZE_CODE, ASK
} Sizing;

/* Types that have so many instances that these are written together. */
typedef enum { ONE_BY_ONE, STRINGS, TUPLES, FUNCTIONS, CODES, N_BATCHES } Frequent;

typedef struct { Py_ssize_t offset; uint64_t label; } Member;

typedef struct TypeInfo {
    PyTypeObject *type;
    struct TypeInfo *next; /* in its hash bucket */
    traverseproc traverse;
    PyObject *ask;         /* borrowed: the `__sizeof__` in C that is called */
    Member *members;
    uint32_t n_members;
    uint32_t head_bytes;   /* in front of the object: GC header, managed dict and weak references */
    uint64_t flags;        /* of the third word of its instances */
    Py_ssize_t basic, item;
    Py_ssize_t dict_offset;
    uint8_t walking, shape, sizing, frequent;
    bool gc, asks_gc, managed_dict, inline_values, wanted, array, hidden_members;
} TypeInfo;

#define TYPE_CACHE 4096

/* ---- One walk ---------------------------------------------------------------------------------- */

#define BUFFER_BYTES (256u << 10)

/* A buffer of one kind of chunk. Its first 16 bytes are the chunk's header. */
typedef struct {
    char *start, *at, *end;
    char tag[8];
} Out;

typedef struct { uintptr_t target; uint64_t label; } Edge;

#define AHEAD 16 /* objects that are fetched from memory before they are needed */

#define BATCH 64 /* objects of a frequent type that are written together */

typedef struct { const TypeInfo *info; size_t n; uintptr_t at[BATCH]; } Batch;

typedef struct {
    int fd;
    int error; /* an errno; everything stops */
    uint64_t n_objects, n_edges, n_bytes, shallow_bytes;
    Out objects, edges, names, types, arrays, codes, texts;

    Block *blocks;
    RegionSlot *regions;
    size_t region_room, n_regions;
    RegionSlot near[NEAR]; /* those used last */
    Region *spare;         /* stands in where memory has run out */
    char *large; /* a large page for bits, from its end on */
    size_t large_left;

    TypeInfo *type_cache[TYPE_CACHE];
    TypeInfo **type_buckets;
    size_t type_room, n_types;

    Words written, start, waiting, dicts, found, dtypes, new_names, visited, labels, scratch;
    Edge *candidates; /* what the references of the object at hand could be */
    size_t n_candidates, candidate_room;
    uintptr_t ahead[AHEAD];
    unsigned first_ahead, n_ahead;
    Batch batches[N_BATCHES];

    bool by_links;  /* tracked objects come from the collector's own lists */
    bool from_list; /* gc.get_objects() was needed: it holds a reference to each object */
    uint64_t n_left, n_met; /* tracked objects that were left to those lists, and met in them */
    uint64_t labels_of_functions[8]; /* by NAMES_OF_FUNCTIONS */
    PyObject *extra, *wanted;
    PyTypeObject *ndarray;
    bool with_sites;
    uint64_t edges_of_this;
} Walk;

static void fail(Walk *w, int error)
{
    if (!w->error)
        w->error = error;
}

static void *map_memory(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* Zeroed memory that lives as long as the walk; NULL and an error if there is none. */
static void *take(Walk *w, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    Block *block = w->blocks;
    if (!block || block->bytes - block->used < bytes) {
        size_t whole = bytes + sizeof(Block) > BLOCK_BYTES ? bytes + sizeof(Block) : BLOCK_BYTES;
        whole = (whole + 4095) & ~(size_t)4095;
        Block *fresh = map_memory(whole);
        if (!fresh) {
            fail(w, ENOMEM);
            return NULL;
        }
        fresh->bytes = whole;
        fresh->used = (sizeof(Block) + 15) & ~(size_t)15;
        if (block && whole > BLOCK_BYTES) { /* a large one does not end the use of the current one */
            fresh->next = block->next;
            block->next = fresh;
        }
        else {
            fresh->next = block;
            w->blocks = fresh;
        }
        block = fresh;
    }
    void *at = (char *)block + block->used;
    block->used += bytes;
    return at;
}

static bool grow(Walk *w, Words *words)
{
    size_t room = words->room ? words->room * 2 : 1u << 16;
    uintptr_t *at = map_memory(room * sizeof(uintptr_t));
    if (!at) {
        fail(w, ENOMEM);
        return false;
    }
    if (words->room) {
        memcpy(at, words->at, words->n * sizeof(uintptr_t));
        munmap(words->at, words->room * sizeof(uintptr_t));
    }
    words->at = at;
    words->room = room;
    return true;
}

static inline void add(Walk *w, Words *words, uintptr_t word)
{
    if (unlikely(words->n == words->room) && !grow(w, words))
        return;
    words->at[words->n++] = word;
}

static void release(Words *words)
{
    if (words->room)
        munmap(words->at, words->room * sizeof(uintptr_t));
    *words = (Words){0};
}

/* Ask for the memory of an object: its header and its first fields may be in two lines. */
static inline void fetch(uintptr_t address)
{
    __builtin_prefetch((void *)(address - 16));
    __builtin_prefetch((void *)(address + 40));
}

/* ---- Marks ------------------------------------------------------------------------------------- */

static inline size_t hashed(uintptr_t key, size_t room)
{
    return (size_t)((key * 0x9E3779B97F4A7C15ull) >> 32) & (room - 1);
}

static bool more_regions(Walk *w)
{
    size_t room = w->region_room ? w->region_room * 2 : 1024;
    RegionSlot *slots = take(w, room * sizeof(RegionSlot));
    if (!slots)
        return false;
    for (size_t i = 0; i < w->region_room; i++) {
        if (!w->regions[i].region)
            continue;
        size_t at = hashed(w->regions[i].key, room);
        while (slots[at].region)
            at = (at + 1) & (room - 1);
        slots[at] = w->regions[i];
    }
    w->regions = slots;
    w->region_room = room;
    return true;
}

#define LARGE_PAGE (2u << 20)

/* The bits `seen` of a region. They are read for every reference, so they are in large pages where
   the kernel has them. */
static uint64_t *take_seen(Walk *w)
{
    size_t bytes = REGION_WORDS * sizeof(uint64_t);
    if (w->large_left < bytes) {
        char *fresh = take(w, 2 * LARGE_PAGE);
        if (!fresh)
            return NULL;
        w->large = (char *)(((uintptr_t)fresh + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1));
        w->large_left = LARGE_PAGE;
#ifdef MADV_HUGEPAGE
        madvise(w->large, LARGE_PAGE, MADV_HUGEPAGE);
#endif
    }
    w->large_left -= bytes;
    return (uint64_t *)(w->large + w->large_left);
}

static __attribute__((noinline)) Region *find_region(Walk *w, uintptr_t key)
{
    size_t at = hashed(key, w->region_room);
    while (w->regions[at].region && w->regions[at].key != key)
        at = (at + 1) & (w->region_room - 1);
    Region *region = w->regions[at].region;
    if (!region) {
        if (w->n_regions * 2 >= w->region_room) {
            if (!more_regions(w))
                return w->spare;
            return find_region(w, key);
        }
        region = take(w, sizeof(Region));
        if (!region || !(region->seen = take_seen(w)))
            return w->spare;
        w->regions[at] = (RegionSlot){key, region};
        w->n_regions++;
    }
    w->near[key % NEAR] = (RegionSlot){key, region};
    return region;
}

static inline Region *region_of(Walk *w, uintptr_t address)
{
    uintptr_t key = address >> REGION_BITS;
    const RegionSlot *near = &w->near[key % NEAR];
    return likely(near->key == key && near->region) ? near->region : find_region(w, key);
}

static inline unsigned slot_of(uintptr_t address)
{
    return (unsigned)((address & ((1u << REGION_BITS) - 1)) >> 4);
}

/* True if the bit was set already. */
static inline bool test_and_set(uint64_t *bits, unsigned slot)
{
    uint64_t bit = 1ull << (slot & 63), word = bits[slot >> 6];
    if (word & bit)
        return true;
    bits[slot >> 6] = word | bit;
    return false;
}

static inline bool test(const uint64_t *bits, unsigned slot)
{
    return (bits[slot >> 6] >> (slot & 63)) & 1;
}

/* Let an object wait if it is met for the first time. There is no branch on that: it could not be
   predicted, and the processor would wait for the bit. */
static inline void reach(Walk *w, uintptr_t address)
{
    if (unlikely(w->waiting.n == w->waiting.room) && !grow(w, &w->waiting))
        return;
    unsigned slot = slot_of(address);
    uint64_t *word = &region_of(w, address)->seen[slot >> 6], old = *word;
    *word = old | 1ull << (slot & 63);
    w->waiting.at[w->waiting.n] = address;
    w->waiting.n += !((old >> (slot & 63)) & 1);
}

static inline bool is_namespace(Walk *w, PyObject *dict)
{
    return test(region_of(w, (uintptr_t)dict)->namespace, slot_of((uintptr_t)dict));
}

static inline void mark_namespace(Walk *w, PyObject *dict)
{
    test_and_set(region_of(w, (uintptr_t)dict)->namespace, slot_of((uintptr_t)dict));
}

/* ---- Writing ----------------------------------------------------------------------------------- */

static bool open_out(Walk *w, Out *out, const char *tag)
{
    out->start = take(w, BUFFER_BYTES);
    if (!out->start)
        return false;
    memcpy(out->tag, tag, strlen(tag));
    out->at = out->start + 16;
    out->end = out->start + BUFFER_BYTES - 8; /* room for the padding */
    return true;
}

static void write_all(Walk *w, const char *at, size_t left)
{
    while (left && !w->error) {
        ssize_t done = write(w->fd, at, left);
        if (done < 0) {
            if (errno != EINTR)
                fail(w, errno);
            continue;
        }
        at += done;
        left -= (size_t)done;
        w->n_bytes += (uint64_t)done;
    }
}

static __attribute__((noinline)) void flush(Walk *w, Out *out)
{
    if (!out->start || out->at == out->start + 16)
        return;
    uint64_t length = (uint64_t)(out->at - out->start) - 16;
    memcpy(out->start, out->tag, 8);
    memcpy(out->start + 8, &length, 8);
    while ((out->at - out->start) & 7)
        *out->at++ = 0;
    write_all(w, out->start, (size_t)(out->at - out->start));
    out->at = out->start + 16;
}

static inline uint64_t *room_for(Walk *w, Out *out, unsigned words)
{
    if (unlikely(out->at + words * 8 > out->end))
        flush(w, out);
    uint64_t *at = (uint64_t *)out->at;
    out->at += words * 8;
    return at;
}

/* Bytes of a record; a record may be cut between two chunks. */
static void put_bytes(Walk *w, Out *out, const void *bytes, size_t n)
{
    const char *from = bytes;
    while (n && !w->error) {
        size_t room = (size_t)(out->end - out->at), part = n < room ? n : room;
        memcpy(out->at, from, part);
        out->at += part;
        from += part;
        n -= part;
        if (n)
            flush(w, out);
    }
}

static void put_u64(Walk *w, Out *out, uint64_t word) { put_bytes(w, out, &word, 8); }

static void put_text(Walk *w, Out *out, const char *text, size_t n)
{
    uint32_t length = (uint32_t)n;
    put_bytes(w, out, &length, 4);
    put_bytes(w, out, text, n);
}

static inline void put_item(Walk *w, uintptr_t target)
{
    *room_for(w, &w->edges, 1) = target;
    w->edges_of_this++;
    reach(w, target);
}

static inline void put_edge(Walk *w, uintptr_t target, uint64_t label)
{
    uint64_t *at = room_for(w, &w->edges, 2);
    at[0] = target;
    at[1] = label;
    w->edges_of_this++;
    reach(w, target);
}

/* ---- Names ------------------------------------------------------------------------------------- */

/* The UTF-8 of a string, without the copy that PyUnicode_AsUTF8 would leave in it. */
static size_t encode(PyObject *text, char *to, size_t room)
{
    size_t n = 0;
    Py_ssize_t length = PyUnicode_GET_LENGTH(text);
    int kind = PyUnicode_KIND(text);
    const void *data = PyUnicode_DATA(text);
    for (Py_ssize_t i = 0; i < length && n + 4 <= room; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        if (c >= 0xD800 && c < 0xE000)
            c = '?';
        if (c < 0x80) {
            to[n++] = (char)c;
        }
        else if (c < 0x800) {
            to[n++] = (char)(0xC0 | c >> 6);
            to[n++] = (char)(0x80 | (c & 63));
        }
        else if (c < 0x10000) {
            to[n++] = (char)(0xE0 | c >> 12);
            to[n++] = (char)(0x80 | (c >> 6 & 63));
            to[n++] = (char)(0x80 | (c & 63));
        }
        else {
            to[n++] = (char)(0xF0 | c >> 18);
            to[n++] = (char)(0x80 | (c >> 12 & 63));
            to[n++] = (char)(0x80 | (c >> 6 & 63));
            to[n++] = (char)(0x80 | (c & 63));
        }
    }
    return n;
}

static inline bool is_ready(PyObject *text)
{
#if AT_LEAST(12)
    return true;
#else
    return PyUnicode_IS_READY(text);
#endif
}

static inline bool starts_word(unsigned char c)
{
    return (unsigned)((c | 32) - 'a') < 26 || c == '_';
}

static bool ascii_identifier(const char *at, Py_ssize_t n)
{
    if (n <= 0 || !starts_word((unsigned char)*at))
        return false;
    for (Py_ssize_t i = 1; i < n; i++)
        if (!starts_word((unsigned char)at[i]) && (unsigned)(at[i] - '0') >= 10)
            return false;
    return true;
}

/* Identifiers, and names like `<lambda>`, that are not too long. Anything else could be data. */
static bool may_be_written(PyObject *name)
{
    if (!is_ready(name))
        return false;
    Py_ssize_t n = PyUnicode_GET_LENGTH(name);
    if (n < 1 || n > LONGEST_NAME)
        return false;
    if (!PyUnicode_IS_COMPACT_ASCII(name))
        return PyUnicode_IsIdentifier(name) == 1;
    const char *at = (const char *)PyUnicode_DATA(name);
    if (at[0] == '<' && at[n - 1] == '>')
        return ascii_identifier(at + 1, n - 2);
    return ascii_identifier(at, n);
}

/* The part of a label that says the name. The name is looked at when all are known: one that must
   not be written is then written as an empty one. */
static inline uint64_t name_bits(Walk *w, PyObject *name)
{
    if (!test_and_set(region_of(w, (uintptr_t)name)->named, slot_of((uintptr_t)name)))
        add(w, &w->new_names, (uintptr_t)name);
    return (uintptr_t)name & NAME_MASK;
}

static void write_name(Walk *w, PyObject *name)
{
    char text[LONGEST_NAME * 4 + 4];
    bool fine = PyUnicode_CheckExact(name) && may_be_written(name);
    put_u64(w, &w->names, (uintptr_t)name);
    put_text(w, &w->names, text, fine ? encode(name, text, sizeof text) : 0);
}

static void write_names(Walk *w)
{
    for (size_t i = 0; i < w->new_names.n && !w->error; i++) {
        if (i + AHEAD < w->new_names.n)
            fetch(w->new_names.at[i + AHEAD]);
        write_name(w, (PyObject *)w->new_names.at[i]);
    }
}

/* The same for a name in C: the members of built-in types. Called once for each member. */
static uint64_t c_name_bits(Walk *w, const char *name)
{
    size_t n = strlen(name);
    if (n > LONGEST_NAME || !ascii_identifier(name, (Py_ssize_t)n))
        return 0;
    put_u64(w, &w->names, (uintptr_t)name);
    put_text(w, &w->names, name, n);
    return (uintptr_t)name & NAME_MASK;
}

/* ---- Types ------------------------------------------------------------------------------------- */

static TypeInfo *learn(Walk *w, PyTypeObject *type);

static inline size_t cache_slot(PyTypeObject *type)
{
    return (size_t)(((uintptr_t)type * 0x9E3779B97F4A7C15ull) >> 52);
}

static __attribute__((noinline)) TypeInfo *find_type(Walk *w, PyTypeObject *type)
{
    size_t slot = cache_slot(type);
    TypeInfo *info = w->type_buckets[hashed((uintptr_t)type >> 4, w->type_room)];
    while (info && info->type != type)
        info = info->next;
    if (!info)
        info = learn(w, type);
    if (info)
        w->type_cache[slot] = info;
    return info;
}

static inline TypeInfo *info_of(Walk *w, PyTypeObject *type)
{
    TypeInfo *info = w->type_cache[cache_slot(type)];
    return likely(info && info->type == type) ? info : find_type(w, type);
}

/* The namespace of a class; a new reference or NULL. */
static PyObject *class_dict(PyTypeObject *type)
{
#if AT_LEAST(12)
    return PyType_GetDict(type);
#else
    return Py_XNewRef(type->tp_dict);
#endif
}

static PyObject *str_module, *str_sizeof; /* interned, made when the module is imported */

static PyObject *class_entry(PyTypeObject *type, PyObject *name)
{
    PyObject *dict = class_dict(type), *found = NULL;
    if (dict && PyDict_Check(dict)) {
        found = PyDict_GetItemWithError(dict, name);
        if (!found)
            PyErr_Clear();
    }
    Py_XDECREF(dict); /* the type still has it, so what was found stays alive */
    return found;
}

typedef struct { char text[LONGEST_TYPE_NAME]; size_t n; } Text;

static void text_of(Text *to, PyObject *from)
{
    to->n = 0;
    if (from && PyUnicode_Check(from) && is_ready(from))
        to->n = encode(from, to->text, sizeof to->text);
}

static void text_of_c(Text *to, const char *from, size_t n)
{
    to->n = n < sizeof to->text ? n : sizeof to->text;
    memcpy(to->text, from, to->n);
}

static void names_of(PyTypeObject *type, Text *qualified, Text *module)
{
    const char *name = type->tp_name ? type->tp_name : "?", *dot = strrchr(name, '.');
    text_of_c(qualified, dot ? dot + 1 : name, strlen(dot ? dot + 1 : name));
    text_of_c(module, dot ? name : "builtins", dot ? (size_t)(dot - name) : 8);
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return;
    PyObject *own = ((PyHeapTypeObject *)type)->ht_qualname;
    if (own)
        text_of(qualified, own);
    text_of(module, class_entry(type, str_module));
}

static bool same_text(const Text *text, const char *other)
{
    return text->n == strlen(other) && !memcmp(text->text, other, text->n);
}

static void write_type(Walk *w, PyTypeObject *type, Text *qualified, Text *module)
{
    PyObject *mro = type->tp_mro;
    Py_ssize_t n = mro && PyTuple_Check(mro) ? PyTuple_GET_SIZE(mro) : 0;
    put_u64(w, &w->types, (uintptr_t)type);
    put_u64(w, &w->types, (uint64_t)type->tp_flags);
    put_u64(w, &w->types, (uint64_t)type->tp_basicsize);
    put_text(w, &w->types, qualified->text, qualified->n);
    put_text(w, &w->types, module->text, module->n);
    uint32_t count = (uint32_t)n;
    put_bytes(w, &w->types, &count, 4);
    for (Py_ssize_t i = 0; i < n; i++)
        put_u64(w, &w->types, (uintptr_t)PyTuple_GET_ITEM(mro, i));
}

/* Types of CPython whose `__sizeof__` is called: they own memory that no struct here shows. Each was
   read: none runs code of the program, and none fails on an object that is not initialized (that of
   struct.Struct does, so it is not here). */
static const char *const ASKED[][2] = {
    {"_io", "BytesIO"}, {"_io", "BufferedReader"}, {"_io", "BufferedWriter"},
    {"_io", "BufferedRandom"}, {"array", "array"}, {"collections", "deque"},
    {"collections", "OrderedDict"}, {"decimal", "Decimal"}, {"_pickle", "Pickler"},
    {"_pickle", "Unpickler"}, {"xml.etree.ElementTree", "Element"}, {"itertools", "product"},
    {"itertools", "permutations"}, {"itertools", "combinations"},
    {"itertools", "combinations_with_replacement"},
};

static bool is_asked(PyTypeObject *type)
{
    Text qualified, module;
    names_of(type, &qualified, &module);
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++)
        if (same_text(&module, ASKED[i][0]) && same_text(&qualified, ASKED[i][1]))
            return true;
    return false;
}

/* The `__sizeof__` that a type of CPython has itself, written in C; borrowed or NULL. */
static PyObject *own_sizeof(PyTypeObject *type)
{
    PyObject *method = class_entry(type, str_sizeof);
    return method && Py_IS_TYPE(method, &PyMethodDescr_Type) ? method : NULL;
}

static PyObject *sizeof_to_ask(PyTypeObject *type)
{
    for (PyTypeObject *t = type; t && t != &PyBaseObject_Type; t = t->tp_base) {
        PyObject *method = own_sizeof(t);
        if (method && is_asked(t))
            return method;
    }
    return NULL;
}

/* Types whose `ob_size` is the number of items behind the object. It is not for all that have
   items: int, type, ctypes, generators and frames keep other things there. */
static bool size_is_length(PyTypeObject *type, const Text *qualified, const Text *module)
{
    if (type->tp_flags & (Py_TPFLAGS_TUPLE_SUBCLASS | Py_TPFLAGS_BYTES_SUBCLASS) ||
        type == &PyMemoryView_Type)
        return true;
    if (same_text(module, "re"))
        return same_text(qualified, "Match") || same_text(qualified, "Pattern");
    return same_text(module, "builtins") && (same_text(qualified, "hamt_bitmap_node") ||
                                             same_text(qualified, "hamt_collision_node"));
}

static void learn_size(TypeInfo *info, const Text *qualified, const Text *module)
{
    PyTypeObject *type = info->type;
    unsigned long flags = type->tp_flags;
    info->sizing = BASIC;
    info->ask = sizeof_to_ask(type);
    if (flags & Py_TPFLAGS_LIST_SUBCLASS)
        info->sizing = SIZE_LIST;
    else if (flags & Py_TPFLAGS_DICT_SUBCLASS)
        info->sizing = SIZE_DICT;
    else if (flags & Py_TPFLAGS_UNICODE_SUBCLASS)
        info->sizing = SIZE_STR;
    else if (flags & Py_TPFLAGS_LONG_SUBCLASS)
        info->sizing = SIZE_INT;
    else if (flags & Py_TPFLAGS_TYPE_SUBCLASS)
        info->sizing = SIZE_CLASS;
    else if (PyType_IsSubtype(type, &PySet_Type) || PyType_IsSubtype(type, &PyFrozenSet_Type))
        info->sizing = SIZE_SET;
    else if (PyType_IsSubtype(type, &PyByteArray_Type))
        info->sizing = SIZE_BYTEARRAY;
    else if (type == &PyCode_Type)
        info->sizing = SIZE_CODE;
    else if (size_is_length(type, qualified, module))
        info->sizing = ITEMS;
    if (info->shape == FRAME || info->shape == GENERATOR)
        info->ask = own_sizeof(type);
    if (info->sizing == SIZE_DICT && !dicts_ok && !info->ask)
        info->ask = own_sizeof(&PyDict_Type);
    if (info->sizing == SIZE_CLASS && !dicts_ok && !info->ask)
        info->ask = own_sizeof(&PyType_Type);
    if (info->ask)
        info->sizing = ASK;
}

static Shape shape_of(PyTypeObject *type)
{
    if (type->tp_flags & Py_TPFLAGS_DICT_SUBCLASS)
        return MAPPING;
    if (type->tp_flags & Py_TPFLAGS_TYPE_SUBCLASS)
        return CLASS;
    if (type->tp_flags & Py_TPFLAGS_BASE_EXC_SUBCLASS)
        return EXCEPTION;
    if (type == &PyFunction_Type)
        return FUNCTION;
    if (type == &PyCell_Type)
        return CELL;
    if (type == &PyMethod_Type)
        return METHOD;
    if (PyType_IsSubtype(type, &PyCFunction_Type))
        return BUILTIN_METHOD;
    if (PyType_IsSubtype(type, &PyModule_Type))
        return MODULE;
    if (type == &PyFrame_Type)
        return FRAME;
    if (type == &PyGen_Type || type == &PyCoro_Type || type == &PyAsyncGen_Type)
        return GENERATOR;
    if (type == &PyTraceBack_Type)
        return TRACEBACK;
    if (type == &PyCode_Type)
        return CODE;
    if (PyType_IsSubtype(type, &_PyWeakref_RefType) || type == &_PyWeakref_ProxyType ||
        type == &_PyWeakref_CallableProxyType)
        return WEAK_REFERENCE;
    return NO_SHAPE;
}

static Walking walking_of(const TypeInfo *info)
{
    PyTypeObject *type = info->type;
    if (type == &PyList_Type)
        return LIST;
    if (type == &PyTuple_Type)
        return TUPLE;
    if (type == &PyDict_Type && dicts_ok)
        return DICT;
    if (type == &PyFunction_Type && functions_ok)
        return FUNCTION_FIELDS;
    if (info->shape != NO_SHAPE || info->array || info->hidden_members)
        return MATCHED;
    if (!info->gc || !info->traverse)
        return LEAF;
    if (info->n_members || info->dict_offset || info->managed_dict ||
        type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        return MATCHED;
    return STREAM;
}

static Frequent frequent_of(const TypeInfo *info)
{
    PyTypeObject *type = info->type;
    if (type == &PyUnicode_Type)
        return STRINGS;
    if (type == &PyTuple_Type)
        return TUPLES;
    if (type == &PyFunction_Type && functions_ok)
        return FUNCTIONS;
    return type == &PyCode_Type ? CODES : ONE_BY_ONE;
}

static inline bool is_object_member(const PyMemberDef *member)
{
    return (member->type == T_OBJECT || member->type == T_OBJECT_EX) && member->offset > 0;
}

/* Slots and the members of built-in types, those of the class itself first. */
static void learn_members(Walk *w, TypeInfo *info)
{
    size_t n = 0;
    for (PyTypeObject *t = info->type; t; t = t->tp_base)
        for (PyMemberDef *m = t->tp_members; m && m->name; m++)
            n += is_object_member(m);
    if (!n || !(info->members = take(w, n * sizeof(Member))))
        return;
    for (PyTypeObject *t = info->type; t; t = t->tp_base) {
        bool partial = t->tp_name && !strcmp(t->tp_name, "functools.partial");
        for (PyMemberDef *m = t->tp_members; m && m->name; m++) {
            if (!is_object_member(m))
                continue;
            uint64_t label = partial && !strcmp(m->name, "func")
                                 ? ROLE(FUNCTION) : ROLE(ATTRIBUTE) | c_name_bits(w, m->name);
            info->members[info->n_members++] = (Member){m->offset, label};
        }
    }
}

static bool is_wanted(Walk *w, PyTypeObject *type)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(w->wanted); i++)
        if (PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(w->wanted, i)))
            return true;
    return false;
}

static uint32_t bytes_in_front(PyTypeObject *type)
{
    uint32_t bytes = type->tp_flags & Py_TPFLAGS_HAVE_GC ? 16 : 0;
#if AT_LEAST(12)
    bool more = type->tp_flags & (Py_TPFLAGS_MANAGED_DICT | Py_TPFLAGS_MANAGED_WEAKREF);
#else
    bool more = type->tp_flags & Py_TPFLAGS_MANAGED_DICT;
#endif
    return bytes + (more ? 16 : 0);
}

static void more_types(Walk *w)
{
    size_t room = w->type_room * 2;
    TypeInfo **buckets = take(w, room * sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < w->type_room; i++) {
        TypeInfo *info = w->type_buckets[i], *next;
        for (; info; info = next) {
            next = info->next;
            size_t at = hashed((uintptr_t)info->type >> 4, room);
            info->next = buckets[at];
            buckets[at] = info;
        }
    }
    w->type_buckets = buckets;
    w->type_room = room;
}

/* Find out once what the walk needs to know of a type, and write the type down. */
static TypeInfo *learn(Walk *w, PyTypeObject *type)
{
    TypeInfo *info = take(w, sizeof *info);
    if (!info)
        return NULL;
    if (w->n_types++ > w->type_room)
        more_types(w);
    size_t at = hashed((uintptr_t)type >> 4, w->type_room);
    info->next = w->type_buckets[at];
    w->type_buckets[at] = info;

    reach(w, (uintptr_t)type); /* nobody may refer to it but its instances, which do not show it */
    Text qualified, module;
    names_of(type, &qualified, &module);
    write_type(w, type, &qualified, &module);

    unsigned long flags = type->tp_flags;
    info->type = type;
    info->gc = (flags & Py_TPFLAGS_HAVE_GC) != 0;
    info->asks_gc = type->tp_is_gc != NULL;
    info->traverse = type->tp_traverse;
    info->basic = type->tp_basicsize;
    info->item = type->tp_itemsize;
    info->head_bytes = bytes_in_front(type);
    info->managed_dict = (flags & Py_TPFLAGS_MANAGED_DICT) != 0;
    info->dict_offset = info->managed_dict ? 0 : type->tp_dictoffset;
    info->inline_values = attributes_ok && info->managed_dict && flags & Py_TPFLAGS_HEAPTYPE &&
                          ((PyHeapTypeObject *)type)->ht_cached_keys;
#if AT_LEAST(13)
    info->inline_values = info->inline_values && flags & Py_TPFLAGS_INLINE_VALUES;
#endif
    info->array = w->ndarray && PyType_IsSubtype(type, w->ndarray);
    info->wanted = is_wanted(w, type);
    info->shape = shape_of(type);
    if (flags & Py_TPFLAGS_TYPE_SUBCLASS)
        info->flags |= CLASS_OBJECT;
    if (info->shape == MODULE)
        info->flags |= MODULE_OBJECT;
    if (info->gc || flags & Py_TPFLAGS_HEAPTYPE)
        learn_members(w, info);
    info->hidden_members = !info->gc && info->n_members;
    info->walking = walking_of(info);
    learn_size(info, &qualified, &module);
    info->frequent = (uint8_t)frequent_of(info);

    PyObject *mro = type->tp_mro; /* every class of an mro is written too */
    if (mro && PyTuple_Check(mro))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++)
            if (PyType_Check(PyTuple_GET_ITEM(mro, i)))
                info_of(w, (PyTypeObject *)PyTuple_GET_ITEM(mro, i));
    return info;
}

/* ---- Sizes ------------------------------------------------------------------------------------- */

static size_t ask_size(const TypeInfo *info, PyObject *o)
{
    PyObject *answer = PyObject_CallOneArg(info->ask, o);
    size_t bytes = answer ? PyLong_AsSize_t(answer) : (size_t)-1;
    Py_XDECREF(answer);
    if (bytes == (size_t)-1) {
        PyErr_Clear();
        return (size_t)info->basic;
    }
    return bytes;
}

static size_t str_size(PyObject *o)
{
    PyCompactUnicodeObject *compact = (PyCompactUnicodeObject *)o;
    size_t bytes = 0;
#if !AT_LEAST(12)
    wchar_t *wide = ((PyASCIIObject *)o)->wstr; /* the deprecated copy in wide characters */
    if (!is_ready(o))
        return sizeof(PyUnicodeObject) +
               (wide ? ((size_t)compact->wstr_length + 1) * sizeof(wchar_t) : 0);
    if (unlikely(wide && (void *)wide != PyUnicode_DATA(o)))
        bytes = ((PyUnicode_IS_COMPACT_ASCII(o) ? (size_t)PyUnicode_GET_LENGTH(o)
                                                : (size_t)compact->wstr_length) + 1) * sizeof(wchar_t);
#endif
    size_t length = (size_t)PyUnicode_GET_LENGTH(o);
    if (PyUnicode_IS_COMPACT_ASCII(o))
        return bytes + sizeof(PyASCIIObject) + length + 1;
    if (PyUnicode_IS_COMPACT(o))
        bytes += sizeof(PyCompactUnicodeObject) + (length + 1) * (size_t)PyUnicode_KIND(o);
    else
        bytes += sizeof(PyUnicodeObject) + (length + 1) * (size_t)PyUnicode_KIND(o);
    if (compact->utf8 && (void *)compact->utf8 != PyUnicode_DATA(o))
        bytes += (size_t)compact->utf8_length + 1;
    return bytes;
}

static size_t int_size(PyObject *o)
{
#if AT_LEAST(12)
    size_t digits = (size_t)(((PyLongObject *)o)->long_value.lv_tag >> 3);
    size_t head = offsetof(PyLongObject, long_value.ob_digit);
#else
    size_t digits = (size_t)Py_ABS(Py_SIZE(o));
    size_t head = offsetof(PyLongObject, ob_digit);
#endif
    return head + (digits ? digits : 1) * sizeof(digit);
}

static size_t dict_size(const TypeInfo *info, PyObject *o)
{
    PyDictObject *dict = (PyDictObject *)o;
    Keys *keys = (Keys *)dict->ma_keys;
    size_t bytes = (size_t)info->basic;
    if (dict->ma_values)
        bytes += (size_t)(keys->nentries + keys->usable) * sizeof(PyObject *);
    if (keys->refcnt == 1)
        bytes += keys_bytes(keys);
    return bytes;
}

static size_t set_size(const TypeInfo *info, PyObject *o)
{
    PySetObject *set = (PySetObject *)o;
    size_t bytes = (size_t)info->basic;
    if (set->table != set->smalltable)
        bytes += (size_t)(set->mask + 1) * sizeof(setentry);
    return bytes;
}

static size_t class_size(PyObject *o)
{
    PyTypeObject *type = (PyTypeObject *)o;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return sizeof(PyTypeObject);
    Keys *keys = (Keys *)((PyHeapTypeObject *)o)->ht_cached_keys;
    return sizeof(PyHeapTypeObject) + (keys ? keys_bytes(keys) : 0);
}

static PyObject *code_sizeof; /* borrowed from the type of code objects */

static size_t code_size(const TypeInfo *info, PyObject *o)
{
    if (((PyCodeObject *)o)->co_extra) {
        TypeInfo asked = *info;
        asked.ask = code_sizeof;
        return ask_size(&asked, o);
    }
    return ((size_t)info->basic + (size_t)Py_SIZE(o) * (size_t)info->item + 7) & ~(size_t)7;
}

/* The inline attributes of an instance: where they stand, or NULL. */
static inline Values *inline_values(const TypeInfo *info, PyObject *o)
{
#if AT_LEAST(13)
    Values *values = (Values *)((char *)o + info->basic);
    return values->valid ? values : NULL;
#elif AT_LEAST(12)
    uintptr_t word = ((uintptr_t *)o)[-3];
    return word & 1 ? (Values *)(word + 1) : NULL;
#else
    return ((Values **)o)[-4];
#endif
}

/* The block of inline attributes: allocated apart in 3.11 and 3.12, behind the object since 3.13.
   `sys.getsizeof` leaves it out. */
static inline size_t inline_bytes(const TypeInfo *info, PyObject *o)
{
    Keys *keys = (Keys *)((PyHeapTypeObject *)info->type)->ht_cached_keys;
    size_t n = (size_t)(keys->nentries + keys->usable);
#if AT_LEAST(13)
    return ((n + 7) & ~(size_t)7) + (n + 1) * sizeof(PyObject *);
#else
    /* The byte before the values is the length of what stands in front of them: two bytes and one
       for each value, in steps of 8. The first instances of a class have room for more values. */
    Values *values = inline_values(info, o);
    if (!values)
        return 0;
    size_t front = ((uint8_t *)values)[-1], least = front > 9 ? front - 9 : 1;
    return front + (n > least ? n : least) * sizeof(PyObject *);
#endif
}

/* As `sys.getsizeof`, and the block of inline attributes. Never a method of the program. */
static inline uint64_t shallow_bytes(const TypeInfo *info, PyObject *o)
{
    size_t bytes;
    switch ((Sizing)info->sizing) {
    case ITEMS: bytes = (size_t)info->basic + (size_t)Py_ABS(Py_SIZE(o)) * (size_t)info->item; break;
    case SIZE_LIST: bytes = (size_t)info->basic + (size_t)((PyListObject *)o)->allocated * 8; break;
    case SIZE_DICT: bytes = dict_size(info, o); break;
    case SIZE_SET: bytes = set_size(info, o); break;
    case SIZE_STR: bytes = str_size(o); break;
    case SIZE_BYTEARRAY: bytes = (size_t)info->basic + (size_t)((PyByteArrayObject *)o)->ob_alloc; break;
    case SIZE_INT: bytes = int_size(o); break;
    case SIZE_CLASS: bytes = class_size(o); break;
    case SIZE_CODE: bytes = code_size(info, o); break;
    case ASK: bytes = ask_size(info, o); break;
    default: bytes = (size_t)info->basic;
    }
    bytes += info->head_bytes;
#if AT_LEAST(13)
    if (info->shape == CLASS && !(((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        bytes -= info->head_bytes; /* a static class has no header */
#endif
    if (info->inline_values)
        bytes += inline_bytes(info, o);
    return bytes > SIZE_MASK ? SIZE_MASK : bytes;
}

/* ---- References -------------------------------------------------------------------------------- */

static int stream_one(PyObject *target, void *walk)
{
    Walk *w = walk;
    if (likely(target != w->extra))
        put_item(w, (uintptr_t)target);
    return w->error;
}

static int gather_one(PyObject *target, void *walk)
{
    Walk *w = walk;
    if (likely(target != w->extra))
        add(w, &w->visited, (uintptr_t)target);
    return w->error;
}

static inline void candidate(Walk *w, void *target, uint64_t label)
{
    if (target && w->n_candidates < w->candidate_room)
        w->candidates[w->n_candidates++] = (Edge){(uintptr_t)target, label};
}

static void put_items(Walk *w, PyObject **items, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n && !w->error; i++)
        if (items[i] && items[i] != w->extra)
            put_item(w, (uintptr_t)items[i]);
}

/* An entry of a dict: a name in a namespace, otherwise an item and its key. `visited`: as traverse
   does, which leaves out the keys of a table of strings. */
static inline void put_entry(Walk *w, PyObject *key, PyObject *value, bool namespace, bool visited)
{
    put_edge(w, (uintptr_t)value, namespace ? ROLE(NAME) | name_bits(w, key) : ROLE(ITEM));
    if (visited)
        put_edge(w, (uintptr_t)key, ROLE(KEY));
    else if (!namespace)
        put_edge(w, (uintptr_t)key, ROLE(KEY) | SHORTCUT);
}

static void put_dict(Walk *w, PyObject *o, bool namespace)
{
    PyDictObject *dict = (PyDictObject *)o;
    Keys *keys = (Keys *)dict->ma_keys;
    Py_ssize_t n = keys->nentries;
    if (dict->ma_values) {
        Values *values = (Values *)dict->ma_values;
#if AT_LEAST(13)
        if (values->embedded) /* the instance visits them */
            return;
#endif
        UnicodeEntry *entries = entries_of(keys);
        for (Py_ssize_t i = 0; i < n && !w->error; i++)
            if (values->values[i])
                put_entry(w, entries[i].key, values->values[i], namespace, false);
    }
    else if (keys->kind == GENERAL_KEYS) {
        GeneralEntry *entries = entries_of(keys);
        for (Py_ssize_t i = 0; i < n && !w->error; i++)
            if (entries[i].value)
                put_entry(w, entries[i].key, entries[i].value, namespace, true);
    }
    else {
        UnicodeEntry *entries = entries_of(keys);
        for (Py_ssize_t i = 0; i < n && !w->error; i++)
            if (entries[i].value)
                put_entry(w, entries[i].key, entries[i].value, namespace, false);
    }
}

/* ---- What the references of an object could be ------------------------------------------------- */

static inline bool has_name(PyCodeObject *code, Py_ssize_t i)
{
    PyObject *names = code->co_localsplusnames;
    return names && PyTuple_Check(names) && i >= 0 && i < PyTuple_GET_SIZE(names);
}

static uint64_t local_name(Walk *w, PyCodeObject *code, Py_ssize_t i)
{
    return has_name(code, i) ? name_bits(w, PyTuple_GET_ITEM(code->co_localsplusnames, i)) : 0;
}

static const char *const NAMES_OF_FUNCTIONS[] = {
    "__doc__", "__module__", "__builtins__", "__name__", "__qualname__", "__annotations__",
    "__type_params__", "__annotate__",
};

/* What traverse shows of a function, in the order of the fields that a reader asks for most. */
static unsigned function_references(Walk *w, PyObject *o, Edge *to)
{
    PyFunctionObject *f = (PyFunctionObject *)o;
    const Edge all[] = {
        {(uintptr_t)f->func_code, ROLE(CODE)},
        {(uintptr_t)f->func_globals, ROLE(GLOBALS)},
        {(uintptr_t)f->func_closure, ROLE(CLOSURE_TUPLE)},
        {(uintptr_t)f->func_dict, ROLE(NAMESPACE)},
        {(uintptr_t)f->func_defaults, ROLE(ITEM)},
        {(uintptr_t)f->func_kwdefaults, ROLE(ITEM)},
        {(uintptr_t)f->func_doc, w->labels_of_functions[0]},
        {(uintptr_t)f->func_module, w->labels_of_functions[1]},
        {(uintptr_t)f->func_builtins, w->labels_of_functions[2]},
        {(uintptr_t)f->func_name, w->labels_of_functions[3]},
        {(uintptr_t)f->func_qualname, w->labels_of_functions[4]},
        {(uintptr_t)f->func_annotations, w->labels_of_functions[5]},
#if AT_LEAST(12)
        {(uintptr_t)f->func_typeparams, w->labels_of_functions[6]},
#endif
#if AT_LEAST(14)
        {(uintptr_t)f->func_annotate, w->labels_of_functions[7]},
#endif
    };
    unsigned n = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        to[n] = all[i];
        n += all[i].target != 0;
    }
    return n;
}

#define MOST_FUNCTION_REFERENCES 16

/* Shortcuts with a name through the tuples that hold the cells and the defaults. */
static void put_function_shortcuts(Walk *w, PyObject *o)
{
    PyFunctionObject *f = (PyFunctionObject *)o;
    PyCodeObject *code = (PyCodeObject *)f->func_code;
    PyObject *cells = f->func_closure, *defaults = f->func_defaults, *by_name = f->func_kwdefaults;
    if (!(cells || defaults || by_name) || !code || !PyCode_Check(code))
        return;
    if (cells && PyTuple_Check(cells))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(cells); i++)
            put_edge(w, (uintptr_t)PyTuple_GET_ITEM(cells, i), ROLE(CLOSURE) | SHORTCUT |
                     local_name(w, code, code->co_nlocalsplus - code->co_nfreevars + i));
    if (defaults && PyTuple_Check(defaults)) {
        Py_ssize_t n = PyTuple_GET_SIZE(defaults);
        for (Py_ssize_t i = 0; i < n; i++)
            put_edge(w, (uintptr_t)PyTuple_GET_ITEM(defaults, i), ROLE(DEFAULT) | SHORTCUT |
                     local_name(w, code, code->co_argcount - n + i));
    }
    if (by_name && PyDict_Check(by_name)) {
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(by_name, &at, &key, &value);) {
            uint64_t name = 0; /* only if it is the name of an argument: a key could be anything */
            for (int i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++)
                if (has_name(code, i) && PyTuple_GET_ITEM(code->co_localsplusnames, i) == key)
                    name = name_bits(w, key);
            put_edge(w, (uintptr_t)value, ROLE(DEFAULT) | SHORTCUT | name);
        }
    }
}

static void class_candidates(Walk *w, PyObject *o)
{
    PyTypeObject *type = (PyTypeObject *)o;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return;
    if (type->tp_dict)
        mark_namespace(w, type->tp_dict);
    candidate(w, type->tp_dict, ROLE(NAMESPACE));
    candidate(w, type->tp_mro, ROLE(CLASS_LINK));
    candidate(w, type->tp_bases, ROLE(CLASS_LINK));
    candidate(w, type->tp_base, ROLE(CLASS_LINK));
}

/* References of a class that traverse does not show: all of a static class, and the dict of weak
   references to the subclasses of any other. */
static void put_hidden_class_references(Walk *w, PyObject *o)
{
    PyTypeObject *type = (PyTypeObject *)o;
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        PyObject *subclasses = (PyObject *)type->tp_subclasses;
        if (subclasses && PyDict_CheckExact(subclasses))
            put_edge(w, (uintptr_t)subclasses, ROLE(CLASS_LINK));
        return;
    }
    PyObject *dict = class_dict(type);
    if (dict) {
        mark_namespace(w, dict);
        put_edge(w, (uintptr_t)dict, ROLE(NAMESPACE));
        Py_DECREF(dict);
    }
    if (type->tp_mro)
        put_edge(w, (uintptr_t)type->tp_mro, ROLE(CLASS_LINK));
    if (type->tp_bases)
        put_edge(w, (uintptr_t)type->tp_bases, ROLE(CLASS_LINK));
}

static void exception_candidates(Walk *w, PyObject *o)
{
    PyBaseExceptionObject *e = (PyBaseExceptionObject *)o;
    candidate(w, e->args, ROLE(ARGS));
    candidate(w, e->notes, ROLE(ATTRIBUTE));
    candidate(w, e->traceback, ROLE(TRACEBACK));
    candidate(w, e->cause, ROLE(CAUSE));
    candidate(w, e->context, ROLE(CONTEXT));
}

/* How many variables and stack values have room behind a frame or generator. */
static Py_ssize_t slots_behind(const TypeInfo *info, PyObject *o)
{
    return info->ask ? ((Py_ssize_t)ask_size(info, o) - info->basic) / 8 : 0;
}

/* Code, function and frames come first in what a frame shows, then local variables in the order of
   their names, then values of the evaluation stack. The variables stand behind the object. */
static void frame_candidates(Walk *w, const TypeInfo *info, PyObject *o)
{
    size_t last = w->visited.n < 8 ? w->visited.n : 8;
    PyCodeObject *code = NULL;
    for (size_t i = 0; i < last; i++) {
        PyObject *target = (PyObject *)w->visited.at[i];
        if (PyCode_Check(target) && (!code || code == (PyCodeObject *)target)) {
            code = (PyCodeObject *)target;
            candidate(w, target, ROLE(CODE));
        }
        else if (!code && PyFunction_Check(target))
            candidate(w, target, ROLE(FUNCTION));
        else if (!code && PyFrame_Check(target))
            candidate(w, target, ROLE(BACK));
    }
    if (!code || !locals_ok)
        return;
    uintptr_t *variables = (uintptr_t *)((char *)o + info->basic);
    Py_ssize_t n = code->co_nlocalsplus, room = slots_behind(info, o);
    if (n > room)
        n = room; /* not the code of this frame */
    for (Py_ssize_t i = 0; i < n; i++) /* the lowest bits are tags since 3.14 */
        candidate(w, (void *)(variables[i] & ~(uintptr_t)3), ROLE(LOCAL) | local_name(w, code, i));
}

static void shape_candidates(Walk *w, const TypeInfo *info, PyObject *o)
{
    switch ((Shape)info->shape) {
    case FUNCTION: w->n_candidates = function_references(w, o, w->candidates); break;
    case CELL: candidate(w, ((PyCellObject *)o)->ob_ref, ROLE(CELL)); break;
    case METHOD:
        candidate(w, ((PyMethodObject *)o)->im_func, ROLE(FUNCTION));
        candidate(w, ((PyMethodObject *)o)->im_self, ROLE(SELF));
        break;
    case BUILTIN_METHOD: candidate(w, ((PyCFunctionObject *)o)->m_self, ROLE(SELF)); break;
    case CLASS: class_candidates(w, o); break;
    case EXCEPTION: exception_candidates(w, o); break;
    case TRACEBACK:
        candidate(w, ((PyTracebackObject *)o)->tb_next, ROLE(BACK));
        candidate(w, ((PyTracebackObject *)o)->tb_frame, ROLE(FRAME));
        break;
    case WEAK_REFERENCE:
        candidate(w, ((PyWeakReference *)o)->wr_callback, ROLE(CALLBACK));
        break;
    case FRAME:
    case GENERATOR: frame_candidates(w, info, o); break;
    default: break;
    }
}

static void member_candidates(Walk *w, const TypeInfo *info, PyObject *o)
{
    for (uint32_t i = 0; i < info->n_members; i++)
        candidate(w, *(PyObject **)((char *)o + info->members[i].offset), info->members[i].label);
}

/* The `__dict__` that an instance has already, or NULL. Makes none. */
static PyObject *instance_dict(const TypeInfo *info, PyObject *o)
{
    if (info->managed_dict) {
        if (!attributes_ok)
            return NULL;
#if AT_LEAST(12) && !AT_LEAST(13)
        uintptr_t word = ((uintptr_t *)o)[-3];
        return word & 1 ? NULL : (PyObject *)word;
#else
        return ((PyObject **)o)[-3];
#endif
    }
    if (info->dict_offset > 0)
        return *(PyObject **)((char *)o + info->dict_offset);
    if (info->dict_offset < 0) {
        PyObject **at = _PyObject_GetDictPtr(o);
        return at ? *at : NULL;
    }
    return NULL;
}

static void dict_candidate(Walk *w, const TypeInfo *info, PyObject *o)
{
    PyObject *dict = instance_dict(info, o);
    if (!dict || info->shape == CLASS)
        return;
    mark_namespace(w, dict);
    candidate(w, dict, ROLE(NAMESPACE));
}

/* The inline attributes of an instance, by the names that its class shares among its instances. */
static void inline_candidates(Walk *w, const TypeInfo *info, PyObject *o)
{
    Values *values = inline_values(info, o);
    if (!values)
        return;
    Keys *keys = (Keys *)((PyHeapTypeObject *)info->type)->ht_cached_keys;
    UnicodeEntry *entries = entries_of(keys);
    for (Py_ssize_t i = 0; i < keys->nentries; i++)
        if (values->values[i])
            candidate(w, values->values[i], ROLE(ATTRIBUTE) | name_bits(w, entries[i].key));
}

/* ---- Labels by matching ------------------------------------------------------------------------ */

/* Give each visited reference the label of the first candidate left for its target. */
static void match(Walk *w, uint64_t *labels)
{
    Edge *candidates = w->candidates;
    size_t n = w->n_candidates, first = 0;
    for (size_t i = 0; i < w->visited.n; i++) {
        uintptr_t target = w->visited.at[i];
        while (first < n && !candidates[first].target)
            first++;
        size_t at = first;
        while (at < n && candidates[at].target != target)
            at++;
        labels[i] = 0;
        if (at < n) {
            labels[i] = candidates[at].label;
            candidates[at].target = 0;
        }
    }
}

static bool all_matched(const Walk *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (w->candidates[i].target)
            return false;
    return true;
}

/* Traverse says other than the layout of inline attributes: the names cannot be trusted. */
static void drop_names(Walk *w, uint64_t *labels)
{
    for (size_t i = 0; i < w->visited.n; i++)
        if (labels[i] >> 56 == ROLE_ATTRIBUTE)
            labels[i] = ROLE(ATTRIBUTE);
}

/* What a frame shows behind its code are its variables and its stack, named or not. */
static void rest_are_locals(Walk *w, uint64_t *labels)
{
    bool behind = false;
    for (size_t i = 0; i < w->visited.n; i++) {
        if (behind && labels[i] == 0)
            labels[i] = ROLE(LOCAL);
        behind = behind || labels[i] >> 56 == ROLE_LOCAL;
    }
}

/* The entries of a subclass of dict stand together in what it shows. Label them; true and the
   keys that traverse leaves out are in `scratch` if they were found. */
static bool label_entries(Walk *w, PyObject *o, bool namespace, uint64_t *labels)
{
    PyObject *key, *value;
    w->scratch.n = 0;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &value);) {
        add(w, &w->scratch, (uintptr_t)value);
        add(w, &w->scratch, (uintptr_t)key);
    }
    size_t entries = w->scratch.n / 2, n = w->visited.n;
    if (!entries || w->error)
        return false;
    for (int step = 2; step >= 1; step--) { /* 2: keys are shown too, each after its value */
        for (size_t start = 0; start + entries * (size_t)step <= n; start++) {
            size_t i = 0;
            while (i < entries && w->visited.at[start + i * step] == w->scratch.at[2 * i] &&
                   (step == 1 || w->visited.at[start + i * 2 + 1] == w->scratch.at[2 * i + 1]))
                i++;
            if (i < entries)
                continue;
            for (i = 0; i < entries; i++) {
                PyObject *name = (PyObject *)w->scratch.at[2 * i + 1];
                labels[start + i * step] = namespace ? ROLE(NAME) | name_bits(w, name) : 0;
                if (step == 2)
                    labels[start + i * 2 + 1] = ROLE(KEY);
            }
            return step == 1 && !namespace;
        }
    }
    return false;
}

static bool is_asyncio(PyObject *module)
{
#if AT_LEAST(12)
    PyModuleDef *def = PyModule_GetDef(module);
    if (!def)
        PyErr_Clear();
    return def && def->m_name && !strcmp(def->m_name, "_asyncio");
#else
    return false;
#endif
}

static void visit_references(Walk *w, const TypeInfo *info, PyObject *o, bool gc)
{
    w->visited.n = 0;
    if (!gc || !info->traverse)
        return;
    /* In 3.12 the module _asyncio shows the collector iterators that it has freed. */
    if (info->shape == MODULE && is_asyncio(o)) {
        PyObject *dict = instance_dict(info, o);
        if (dict)
            add(w, &w->visited, (uintptr_t)dict);
        return;
    }
    info->traverse(o, gather_one, w);
}

/* ---- NumPy arrays ------------------------------------------------------------------------------ */

/* The head of NumPy's PyArrayObject and PyArray_Descr, the same in NumPy 1 and 2. */
typedef struct {
    PyObject_HEAD
    char *data;
    int nd;
    Py_ssize_t *dimensions, *strides;
    PyObject *base, *descr;
    int flags;
} Array;

typedef struct { PyObject_HEAD PyTypeObject *typeobj; char kind; } Descr;

#define C_CONTIGUOUS 0x1
#define OWNS_DATA 0x4

static void note_dtype(Walk *w, PyObject *dtype)
{
    for (size_t i = 0; i < w->dtypes.n; i++)
        if (w->dtypes.at[i] == (uintptr_t)dtype)
            return;
    add(w, &w->dtypes, (uintptr_t)dtype);
}

static void put_elements(Walk *w, const Array *array)
{
    Py_ssize_t n = 1;
    for (int i = 0; i < array->nd; i++)
        n *= array->dimensions[i];
    PyObject **elements = (PyObject **)array->data;
    for (Py_ssize_t i = 0; elements && i < n && !w->error; i++)
        if (elements[i])
            put_edge(w, (uintptr_t)elements[i], ROLE(ELEMENT));
}

/* Bytes from the first element of an array to behind its last. */
static uint64_t extent(const Array *array)
{
    uint64_t most = 0;
    for (int i = 0; array->strides && i < array->nd; i++) {
        Py_ssize_t stride = array->strides[i] < 0 ? -array->strides[i] : array->strides[i];
        uint64_t bytes = (uint64_t)stride * (uint64_t)array->dimensions[i];
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void put_array(Walk *w, PyObject *o)
{
    const Array *array = (Array *)o;
    if (!array->descr || array->nd < 0 || (array->nd && !array->dimensions))
        return; /* not initialized yet */
    put_u64(w, &w->arrays, (uintptr_t)o);
    put_u64(w, &w->arrays, (uintptr_t)array->data);
    put_u64(w, &w->arrays, (uintptr_t)array->base);
    put_u64(w, &w->arrays, (uintptr_t)array->descr);
    put_u64(w, &w->arrays, (uint64_t)(uint32_t)array->flags);
    put_u64(w, &w->arrays, (uint64_t)array->nd);
    for (int i = 0; i < array->nd; i++)
        put_u64(w, &w->arrays, (uint64_t)array->dimensions[i]);
    note_dtype(w, array->descr);
    if (array->flags & OWNS_DATA)
        w->shallow_bytes += extent(array);
    if (array->base)
        put_edge(w, (uintptr_t)array->base, ROLE(BASE));
    bool own = (array->flags & C_CONTIGUOUS) && (array->flags & OWNS_DATA);
    if (own && ((Descr *)array->descr)->kind == 'O')
        put_elements(w, array);
}

/* ---- Objects ----------------------------------------------------------------------------------- */

/* Of code that a program makes at run time (`<string>`, `<eval_with_key>`, dataclasses). The parts of
   code from files are half of all objects after large imports, and do not grow: they are left out. */
static bool is_made_at_run_time(const PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    return file && PyUnicode_Check(file) && is_ready(file) && PyUnicode_GET_LENGTH(file) > 0 &&
           PyUnicode_READ_CHAR(file, 0) == '<';
}

/* What code refers to: it is not known to the collector. */
#define LONGEST_TEXT 1000 /* characters of a qualified name or a file */

/* The address of a text of code, which is written once; 0 for one that is not plain. */
static uint64_t code_text(Walk *w, PyObject *text)
{
    if (!text || !PyUnicode_CheckExact(text) || !is_ready(text) ||
        PyUnicode_GET_LENGTH(text) > LONGEST_TEXT)
        return 0;
    Region *region = region_of(w, (uintptr_t)text);
    if (!test_and_set(region->told, slot_of((uintptr_t)text))) {
        char bytes[LONGEST_TEXT * 4 + 4];
        put_u64(w, &w->texts, (uintptr_t)text);
        put_text(w, &w->texts, bytes, encode(text, bytes, sizeof bytes));
    }
    return (uintptr_t)text;
}

/* What a function, a frame or a generator is called, and where it is written: the address of the
   code, its first line, and the addresses of its name and its file, whose texts are in "texts". */
static void put_code(Walk *w, PyCodeObject *code)
{
    put_u64(w, &w->codes, (uintptr_t)code);
    put_u64(w, &w->codes, (uint64_t)code->co_firstlineno);
    put_u64(w, &w->codes, code_text(w, code->co_qualname));
    put_u64(w, &w->codes, code_text(w, code->co_filename));
}

static void put_code_references(Walk *w, PyObject *o)
{
    PyCodeObject *code = (PyCodeObject *)o;
    put_code(w, code);
    if (!is_made_at_run_time(code))
        return;
    PyObject *parts[] = {
        code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames,
        code->co_localspluskinds, code->co_filename, code->co_name, code->co_qualname,
        code->co_linetable,
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i])
            put_edge(w, (uintptr_t)parts[i], ROLE(ITEM));
}

/* References that are real but that traverse does not show, and shortcuts with a name. */
static void put_hidden_references(Walk *w, const TypeInfo *info, PyObject *o)
{
    if (info->hidden_members)
        for (uint32_t i = 0; i < info->n_members; i++) {
            PyObject *target = *(PyObject **)((char *)o + info->members[i].offset);
            if (target)
                put_edge(w, (uintptr_t)target, info->members[i].label);
        }
#if AT_LEAST(13)
    /* An instance with inline attributes owns the dict that was asked for, and does not visit it. */
    if (info->inline_values && inline_values(info, o) && instance_dict(info, o))
        put_edge(w, (uintptr_t)instance_dict(info, o), ROLE(NAMESPACE));
#endif
    if (info->shape == FUNCTION)
        put_function_shortcuts(w, o);
    if (info->shape == CLASS)
        put_hidden_class_references(w, o);
    if (info->shape == CODE)
        put_code_references(w, o);
    if (info->array)
        put_array(w, o);
}

static void put_matched(Walk *w, const TypeInfo *info, PyObject *o, bool gc, bool namespace)
{
    visit_references(w, info, o, gc);
    if (w->error)
        return;
    uint64_t few[64], *labels = few;
    if (w->visited.n > 64) {
        w->labels.n = 0;
        while (w->labels.room < w->visited.n)
            if (!grow(w, &w->labels))
                return;
        labels = (uint64_t *)w->labels.at;
    }
    w->n_candidates = 0;
    shape_candidates(w, info, o);
    dict_candidate(w, info, o);
    if (!info->hidden_members)
        member_candidates(w, info, o);
    size_t first = w->n_candidates;
    if (info->inline_values)
        inline_candidates(w, info, o);
    size_t last = w->n_candidates;
    if (info->type->tp_flags & Py_TPFLAGS_HEAPTYPE)
        candidate(w, info->type, ROLE(TYPE));
    match(w, labels);
    if (!all_matched(w, first, last))
        drop_names(w, labels);
    if (info->shape == FRAME || info->shape == GENERATOR)
        rest_are_locals(w, labels);
    bool more_keys = info->shape == MAPPING && label_entries(w, o, namespace, labels);
    for (size_t i = 0; i < w->visited.n && !w->error; i++)
        put_edge(w, w->visited.at[i], labels[i]);
    for (size_t i = 1; more_keys && i < w->scratch.n && !w->error; i += 2)
        put_edge(w, w->scratch.at[i], ROLE(KEY) | SHORTCUT);
    put_hidden_references(w, info, o);
}

static void put_function(Walk *w, PyObject *o)
{
    Edge edges[MOST_FUNCTION_REFERENCES];
    unsigned n = function_references(w, o, edges);
    for (unsigned i = 0; i < n; i++)
        put_edge(w, edges[i].target, edges[i].label);
    PyObject *dict = ((PyFunctionObject *)o)->func_dict;
    if (dict)
        mark_namespace(w, dict);
    put_function_shortcuts(w, o);
}

static void put_references(Walk *w, const TypeInfo *info, PyObject *o, bool gc, bool namespace)
{
    switch ((Walking)info->walking) {
    case LEAF: break;
    case LIST: put_items(w, ((PyListObject *)o)->ob_item, Py_SIZE(o)); break;
    case TUPLE: put_items(w, ((PyTupleObject *)o)->ob_item, Py_SIZE(o)); break;
    case DICT: put_dict(w, o, namespace); break;
    case FUNCTION_FIELDS: put_function(w, o); break;
    case STREAM:
        if (gc)
            info->traverse(o, stream_one, w);
        break;
    case MATCHED: put_matched(w, info, o, gc, namespace); break;
    }
}

static inline bool is_immortal(PyObject *o)
{
#if AT_LEAST(12)
    return _Py_IsImmortal(o);
#else
    return false;
#endif
}

/* How the walk came to an object: it is added to its address, which is a multiple of 8. */
enum { FOUND = 0, IS_TRACKED = 1, IS_LENT = 2, ORIGIN = 3 };

static Py_ssize_t times_lent(const Walk *w, PyObject *o)
{
    Py_ssize_t times = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(w->extra); i++)
        times += PyList_GET_ITEM(w->extra, i) == o;
    return times;
}

/* The reference count without the references that the walk itself holds. */
static inline uint64_t reference_count(Walk *w, PyObject *o, unsigned origin)
{
    Py_ssize_t count = Py_REFCNT(o);
    if (unlikely(w->from_list) && test(region_of(w, (uintptr_t)o)->listed, slot_of((uintptr_t)o)))
        count--;
    if (unlikely(origin & IS_LENT))
        count -= times_lent(w, o);
    return count < 0 ? 0 : count > UINT32_MAX ? UINT32_MAX : (uint64_t)count;
}

static inline bool is_gc(const TypeInfo *info, PyObject *o)
{
    return info->gc && (!info->asks_gc || info->type->tp_is_gc(o));
}

static inline __attribute__((always_inline)) void
write_object(Walk *w, const TypeInfo *info, PyObject *o, unsigned origin)
{
    bool gc = is_gc(info, o), namespace = false;
    uint64_t bytes = shallow_bytes(info, o), flags = info->flags | bytes;
    uint64_t count = reference_count(w, o, origin);
    if (origin & IS_TRACKED || (gc && !w->by_links && PyObject_GC_IsTracked(o)))
        flags |= TRACKED;
    if (info->shape == MAPPING && is_namespace(w, o)) {
        flags |= NAMESPACE_DICT;
        namespace = true;
    }
    if (is_immortal(o))
        flags |= IMMORTAL;
    w->edges_of_this = 0;
    put_references(w, info, o, gc, namespace);
    if (w->edges_of_this && info->walking >= DICT)
        flags |= LABELLED;
    uint64_t *at = room_for(w, &w->objects, 4);
    at[0] = (uintptr_t)o;
    at[1] = (uintptr_t)info->type;
    at[2] = flags;
    at[3] = count | w->edges_of_this << 32;
    w->n_objects++;
    w->n_edges += w->edges_of_this;
    w->shallow_bytes += bytes;
    if (unlikely(info->wanted))
        add(w, &w->found, (uintptr_t)o);
    if (unlikely(w->with_sites))
        add(w, &w->written, (uintptr_t)o);
}

static __attribute__((noinline)) void write_other(Walk *w, const TypeInfo *info, PyObject *o,
                                                  unsigned origin)
{
    write_object(w, info, o, origin);
}

/* Write objects of one frequent type. All that is decided by the type is a constant here, so the
   compiler makes a loop for each type in which nothing is decided for each object. */
static inline __attribute__((always_inline)) void
write_batch(Walk *w, const Batch *batch, size_t n, Sizing sizing, Walking walking, Shape shape)
{
    TypeInfo info = *batch->info;
    info.sizing = (uint8_t)sizing;
    info.walking = (uint8_t)walking;
    info.shape = (uint8_t)shape;
    info.gc = walking != LEAF && shape != CODE;
    info.head_bytes = info.gc ? 16 : 0;
    info.flags = 0;
    info.asks_gc = info.inline_values = info.array = info.hidden_members = info.managed_dict = false;
    for (size_t i = 0; i < n && !w->error; i++)
        write_object(w, &info, (PyObject *)(batch->at[i] & ~(uintptr_t)ORIGIN),
                     batch->at[i] & ORIGIN);
}

static void take_batch(Walk *w, Frequent frequent)
{
    Batch *batch = &w->batches[frequent];
    size_t n = batch->n;
    batch->n = 0;
    switch (frequent) {
    case STRINGS: write_batch(w, batch, n, SIZE_STR, LEAF, NO_SHAPE); break;
    case TUPLES: write_batch(w, batch, n, ITEMS, TUPLE, NO_SHAPE); break;
    case FUNCTIONS: write_batch(w, batch, n, BASIC, FUNCTION_FIELDS, FUNCTION); break;
    case CODES: write_batch(w, batch, n, SIZE_CODE, MATCHED, CODE); break;
    default: break;
    }
}

static void take_batches(Walk *w)
{
    for (Frequent frequent = STRINGS; frequent < N_BATCHES; frequent++)
        if (w->batches[frequent].n)
            take_batch(w, frequent);
}

/* Ask for the parts of a function that are read when its batch is written. */
static inline void fetch_function(PyObject *o)
{
    char *code = (char *)((PyFunctionObject *)o)->func_code;
    __builtin_prefetch((char *)o + offsetof(PyFunctionObject, func_module));
    __builtin_prefetch(code);
    __builtin_prefetch(code + offsetof(PyCodeObject, co_filename));
    __builtin_prefetch(code + offsetof(PyCodeObject, co_extra));
}

static inline void add_to_batch(Walk *w, const TypeInfo *info, uintptr_t word)
{
    Batch *batch = &w->batches[info->frequent];
    batch->info = info;
    batch->at[batch->n++] = word;
    if (batch->n == BATCH)
        take_batch(w, (Frequent)info->frequent);
}

/* Write an object, but a mapping later: by then all who could have it as their namespace are known. */
static inline void take_object(Walk *w, uintptr_t address, unsigned origin)
{
    PyObject *o = (PyObject *)address;
    TypeInfo *info = info_of(w, Py_TYPE(o));
    if (unlikely(!info))
        return;
    if (w->by_links && !(origin & IS_TRACKED) && is_gc(info, o) && ((Link *)o - 1)->next) {
        w->n_left++; /* its turn comes in the collector's lists */
        return;
    }
    if (info->shape == MAPPING) {
        add(w, &w->dicts, address | origin);
        return;
    }
    if (info->frequent == FUNCTIONS)
        fetch_function(o);
    if (info->frequent != ONE_BY_ONE)
        add_to_batch(w, info, address | origin);
    else
        write_other(w, info, o, origin);
}

/* Take the objects that wait, except the last few, whose memory is on its way to the cache. */
static void take_waiting(Walk *w, unsigned leave)
{
    while (!w->error) {
        while (w->n_ahead < AHEAD && w->waiting.n) {
            uintptr_t address = w->waiting.at[--w->waiting.n];
            fetch(address);
            w->ahead[(w->first_ahead + w->n_ahead++) % AHEAD] = address;
        }
        if (w->n_ahead <= leave)
            return;
        uintptr_t address = w->ahead[w->first_ahead];
        w->first_ahead = (w->first_ahead + 1) % AHEAD;
        w->n_ahead--;
        take_object(w, address, FOUND);
    }
}

/* Take every object that waits or stands in a batch, and what is found through them. */
static void take_all_waiting(Walk *w)
{
    do {
        take_waiting(w, 0);
        take_batches(w);
    } while (w->waiting.n && !w->error);
}

static void take_start(Walk *w)
{
    size_t n = w->start.n;
    for (size_t i = 0; i < n && !w->error; i++) {
        if (i + AHEAD < n)
            fetch(w->start.at[i + AHEAD] & ~(uintptr_t)ORIGIN);
        take_object(w, w->start.at[i] & ~(uintptr_t)ORIGIN, w->start.at[i] & ORIGIN);
        if (w->waiting.n)
            take_waiting(w, AHEAD - 1);
    }
    take_all_waiting(w);
}

static inline PyDictObject *dict_at(const Walk *w, size_t i)
{
    return (PyDictObject *)(w->dicts.at[i] & ~(uintptr_t)ORIGIN);
}

static void take_dicts(Walk *w)
{
    for (size_t i = 0; i < w->dicts.n && !w->error; i++) {
        PyObject *dict = (PyObject *)dict_at(w, i);
        TypeInfo *info = info_of(w, Py_TYPE(dict));
        if (!info)
            return;
        if (i + AHEAD < w->dicts.n)
            fetch((uintptr_t)dict_at(w, i + AHEAD));
        if (i + AHEAD / 2 < w->dicts.n)
            fetch((uintptr_t)dict_at(w, i + AHEAD / 2)->ma_keys);
        write_object(w, info, dict, w->dicts.at[i] & ORIGIN);
        if (w->waiting.n)
            take_waiting(w, AHEAD - 1);
        if (i + 1 == w->dicts.n)
            take_all_waiting(w); /* may find more */
    }
}

/* ---- Where the walk starts --------------------------------------------------------------------- */

static inline void start_with(Walk *w, PyObject *o, unsigned origin)
{
    if (o != w->extra && !test_and_set(region_of(w, (uintptr_t)o)->seen, slot_of((uintptr_t)o)))
        add(w, &w->start, (uintptr_t)o | origin);
}

static void start_with_extra(Walk *w)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(w->extra) && !w->error; i++) {
        PyObject *o = PyList_GET_ITEM(w->extra, i);
        test_and_set(region_of(w, (uintptr_t)o)->lent, slot_of((uintptr_t)o));
        start_with(w, o, IS_LENT);
    }
    PyObject *modules = PyImport_GetModuleDict(); /* reaches what gc.freeze() hides from an API */
    if (modules)
        start_with(w, modules, IS_LENT);
}

/* Take a tracked object from the collector's lists. */
static inline void take_linked(Walk *w, PyObject *o)
{
    Region *region = region_of(w, (uintptr_t)o);
    unsigned slot = slot_of((uintptr_t)o);
    if (test_and_set(region->seen, slot))
        w->n_met++; /* a reference led to it before */
    take_object(w, (uintptr_t)o, test(region->lent, slot) ? IS_TRACKED | IS_LENT : IS_TRACKED);
    if (w->waiting.n)
        take_waiting(w, AHEAD - 1);
}

/* Take the objects of one list, following its links some objects ahead. False if the list is not
   sound: each link's next must have it as its previous one. */
static bool take_list(Walk *w, Link *head)
{
    Link *window[AHEAD], *previous = head, *link = (Link *)head->next;
    size_t read = 0, taken = 0;
    while (!w->error) {
        if (link != head) {
            if ((Link *)(link->prev & ~(uintptr_t)3) != previous)
                return false;
            window[read++ % AHEAD] = link;
            previous = link;
            link = (Link *)link->next;
            fetch((uintptr_t)(link + 1));
            if (read - taken < AHEAD)
                continue;
        }
        if (taken == read)
            break;
        PyObject *o = (PyObject *)(window[taken++ % AHEAD] + 1);
        if (o != w->extra)
            take_linked(w, o);
    }
    return true;
}

/* Take all tracked objects from the collector's own lists. No reference count is written to: pages
   that a process shares with its parent stay shared, and gc.freeze() hides nothing. False if the
   lists are not sound, or objects are in none of them: a collection is under way. */
static bool take_by_links(Walk *w)
{
    if (generations->generation0 != &generations->generations[0].head)
        return false;
    w->by_links = true;
    start_with_extra(w);
    take_start(w);
    for (int i = 0; i < 3; i++)
        if (!take_list(w, &generations->generations[i].head))
            return false;
    if (!take_list(w, &generations->permanent.head))
        return false;
    take_all_waiting(w);
    take_dicts(w);
    return w->n_left == w->n_met;
}

#if AT_LEAST(12)
static int start_with_tracked(PyObject *o, void *walk)
{
    Walk *w = walk;
    start_with(w, o, IS_TRACKED);
    return !w->error;
}

/* Start with all tracked objects. Returns what holds them. */
static PyObject *start_with_all(Walk *w)
{
    PyUnstable_GC_VisitObjects(start_with_tracked, w);
    return Py_NewRef(Py_None);
}
#else
static PyObject *get_objects; /* gc.get_objects */

/* Start with all tracked objects. Returns what holds them. */
static PyObject *start_with_all(Walk *w)
{
    PyObject *list = PyObject_CallNoArgs(get_objects);
    if (!list || !PyList_CheckExact(list))
        return list;
    w->from_list = true;
    test_and_set(region_of(w, (uintptr_t)list)->seen, slot_of((uintptr_t)list));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && !w->error; i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        test_and_set(region_of(w, (uintptr_t)o)->listed, slot_of((uintptr_t)o));
        start_with(w, o, IS_TRACKED);
    }
    return list;
}
#endif

/* Take all tracked objects as the collector's API gives them. Returns what holds them. */
static PyObject *take_by_list(Walk *w)
{
    start_with_extra(w);
    PyObject *held = start_with_all(w);
    if (held) {
        take_start(w);
        take_dicts(w);
    }
    return held;
}

/* ---- The walk ---------------------------------------------------------------------------------- */

static bool prepare(Walk *w)
{
    w->spare = take(w, sizeof(Region));
    if (w->spare)
        w->spare->seen = take_seen(w);
    w->candidate_room = 4096;
    w->candidates = take(w, w->candidate_room * sizeof(Edge));
    w->type_room = 8192;
    w->type_buckets = take(w, w->type_room * sizeof(TypeInfo *));
    bool ready = w->spare && w->spare->seen && w->candidates && w->type_buckets && more_regions(w) &&
           open_out(w, &w->objects, "objects") && open_out(w, &w->edges, "edges") &&
           open_out(w, &w->names, "names") && open_out(w, &w->types, "types") &&
           open_out(w, &w->arrays, "arrays") && open_out(w, &w->codes, "codes") &&
           open_out(w, &w->texts, "texts");
    for (int i = 0; ready && i < 8; i++)
        w->labels_of_functions[i] = ROLE(ATTRIBUTE) | c_name_bits(w, NAMES_OF_FUNCTIONS[i]);
    return ready;
}

static void give_back(Walk *w)
{
    Words *all[] = {&w->start, &w->waiting, &w->dicts, &w->found, &w->dtypes,
                    &w->new_names, &w->visited, &w->scratch, &w->labels, &w->written};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        release(all[i]);
    for (Block *block = w->blocks, *next; block; block = next) {
        next = block->next;
        munmap(block, block->bytes);
    }
}

/* Write out what is in the buffers. */
static void flush_all(Walk *w)
{
    write_names(w);
    flush(w, &w->objects);
    flush(w, &w->edges);
    flush(w, &w->names);
    flush(w, &w->types);
    flush(w, &w->arrays);
    flush(w, &w->codes);
    flush(w, &w->texts);
}

/* ---- Where objects were made ------------------------------------------------------------------- */

/* tracemalloc's own look-up, which reads no object. Not exported by every version. */
extern PyObject *_PyTraceMalloc_GetTraceback(unsigned int domain, uintptr_t address)
    __attribute__((weak));

static bool note_site(PyObject *sites, PyObject *stacks, PyObject *o, PyObject *stack)
{
    PyObject *next = PyLong_FromSsize_t(PyDict_GET_SIZE(stacks));
    PyObject *number = next ? PyDict_SetDefault(stacks, stack, next) : NULL;
    PyObject *address = number ? PyLong_FromVoidPtr(o) : NULL;
    bool done = address && PyDict_SetItem(sites, address, number) == 0;
    Py_XDECREF(address);
    Py_XDECREF(next);
    return done;
}

/* Ask for every object that was written. After the walk: what is made here must not be in it. */
static bool note_sites(const Walk *w, PyObject *sites, PyObject *stacks)
{
    bool going = sites && stacks;
    for (size_t i = 0; going && _PyTraceMalloc_GetTraceback && i < w->written.n; i++) {
        PyObject *o = (PyObject *)w->written.at[i];
        uintptr_t start = (uintptr_t)o - bytes_in_front(Py_TYPE(o));
        PyObject *stack = _PyTraceMalloc_GetTraceback(0, start);
        if (stack && stack != Py_None)
            going = note_site(sites, stacks, o, stack);
        Py_XDECREF(stack);
    }
    return going;
}

static PyObject *list_of(const Words *words)
{
    PyObject *list = PyList_New((Py_ssize_t)words->n);
    for (size_t i = 0; list && i < words->n; i++)
        PyList_SET_ITEM(list, (Py_ssize_t)i, Py_NewRef((PyObject *)words->at[i]));
    return list;
}

static PyObject *tuple_of(const Words *words)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)words->n);
    for (size_t i = 0; tuple && i < words->n; i++)
        PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, Py_NewRef((PyObject *)words->at[i]));
    return tuple;
}

static PyStructSequence_Field walked_fields[] = {
    {"objects", "Number of objects."},
    {"edges", "Number of references."},
    {"written_bytes", "Bytes written to the file."},
    {"found", "The instances of the classes that were asked for."},
    {"dtypes", "The distinct dtypes of arrays."},
    {"shallow_bytes", "Of all objects, with the data of arrays."},
    {"sites", "Number of the stack that an object was made at, by address."},
    {"stacks", "Numbers by stack, as tracemalloc has them."},
    {NULL, NULL},
};

static PyStructSequence_Desc walked_description = {
    "leakscope.observe.heap._walker.Walked", "What a walk came to.", walked_fields, 5,
};

static PyTypeObject *walked_type;

static PyObject *result_of(Walk *w)
{
    if (w->error == ENOMEM)
        return PyErr_NoMemory();
    if (w->error) {
        errno = w->error;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *items[] = {
        PyLong_FromUnsignedLongLong(w->n_objects),
        PyLong_FromUnsignedLongLong(w->n_edges),
        PyLong_FromUnsignedLongLong(w->n_bytes),
        list_of(&w->found),
        tuple_of(&w->dtypes),
        PyLong_FromUnsignedLongLong(w->shallow_bytes),
        PyDict_New(),
        PyDict_New(),
    };
    PyObject *result = PyStructSequence_New(walked_type);
    bool whole = result && note_sites(w, items[6], items[7]);
    for (int i = 0; i < 8; i++) {
        whole = whole && items[i];
        if (result)
            PyStructSequence_SetItem(result, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (!whole)
        Py_CLEAR(result);
    return result;
}

static bool good_arguments(PyObject *extra, PyObject *wanted, PyObject *ndarray)
{
    if (!PyList_CheckExact(extra) || !PyTuple_CheckExact(wanted)) {
        PyErr_SetString(PyExc_ValueError, "extra must be a list and wanted a tuple of classes");
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(wanted); i++)
        if (!PyType_Check(PyTuple_GET_ITEM(wanted, i))) {
            PyErr_SetString(PyExc_ValueError, "wanted must be a tuple of classes");
            return false;
        }
    if (ndarray != Py_None && !PyType_Check(ndarray)) {
        PyErr_SetString(PyExc_ValueError, "ndarray must be a class or None");
        return false;
    }
    return true;
}

/* False if the walk has to be done again another way; the file is as it was before. */
static bool walk_by_links(Walk *w)
{
    off_t begin = lseek(w->fd, 0, SEEK_CUR);
    if (!generations || begin < 0)
        return false;
    if (!prepare(w) || take_by_links(w) || w->error) {
        flush_all(w);
        return true;
    }
    Walk fresh = {.fd = w->fd, .extra = w->extra, .wanted = w->wanted, .ndarray = w->ndarray,
                  .with_sites = w->with_sites};
    give_back(w);
    memcpy(w, &fresh, sizeof fresh);
    if (ftruncate(w->fd, begin) < 0 || lseek(w->fd, begin, SEEK_SET) < 0)
        fail(w, errno);
    return w->error != 0;
}

static PyObject *walk_by_list(Walk *w)
{
    PyObject *held = prepare(w) ? take_by_list(w) : NULL;
    flush_all(w);
    return held;
}

PyDoc_STRVAR(walk_doc,
"walk(fd, extra, wanted, ndarray, with_sites=False)\n--\n\n"
"Append every object to a snapshot file.\n\n"
"Starts from all tracked objects and those in the list `extra`. Returns the number of objects, of\n"
"references and of bytes written, the instances of the classes `wanted`, and the dtypes of arrays.");

static PyObject *walk(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    if (n_args != 4 && n_args != 5) {
        PyErr_SetString(PyExc_ValueError, "walk() takes fd, extra, wanted, ndarray, with_sites");
        return NULL;
    }
    PyObject *extra = args[1], *wanted = args[2], *ndarray = args[3];
    int fd = PyObject_AsFileDescriptor(args[0]);
    if (fd < 0 || !good_arguments(extra, wanted, ndarray))
        return NULL;
    Walk *w = map_memory(sizeof(Walk));
    if (!w)
        return PyErr_NoMemory();
    w->fd = fd;
    w->extra = extra;
    w->wanted = wanted;
    w->with_sites = n_args == 5 && args[4] == Py_True;
    w->ndarray = ndarray == Py_None ? NULL : (PyTypeObject *)ndarray;
    int collecting = PyGC_Disable(); /* making the results must not run the program's finalizers */
    PyObject *held = NULL, *result = NULL;
    if (!walk_by_links(w))
        held = walk_by_list(w);
    if (!PyErr_Occurred())
        result = result_of(w);
    give_back(w);
    munmap(w, sizeof(Walk));
    Py_XDECREF(held);
    if (collecting)
        PyGC_Enable();
    return result;
}

PyDoc_STRVAR(thread_dicts_doc,
"thread_dicts()\n--\n\n"
"Return the dicts that threads keep their thread-local variables in.");

static PyObject *thread_dicts(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    PyThreadState *thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
    for (; list && thread; thread = PyThreadState_Next(thread))
        if (thread->dict && PyList_Append(list, thread->dict) < 0)
            Py_CLEAR(list);
    return list;
}

/* ---- Checks of layouts ------------------------------------------------------------------------- */

static bool attribute_is(PyObject *o, const char *name, Py_ssize_t expected)
{
    PyObject *value = PyObject_GetAttrString(o, name);
    Py_ssize_t got = value ? PyLong_AsSsize_t(value) : -1;
    Py_XDECREF(value);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return false;
    }
    return got == expected;
}

static bool kind_is(PyObject *dtype)
{
    PyObject *kind = PyObject_GetAttrString(dtype, "kind");
    bool same = kind && PyUnicode_Check(kind) && PyUnicode_GET_LENGTH(kind) == 1 &&
                PyUnicode_READ_CHAR(kind, 0) == (Py_UCS4)((Descr *)dtype)->kind;
    Py_XDECREF(kind);
    PyErr_Clear();
    return same;
}

static bool shape_is(PyObject *o, const Array *array)
{
    PyObject *shape = PyObject_GetAttrString(o, "shape");
    bool same = shape && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) == array->nd;
    for (int i = 0; same && i < array->nd; i++)
        same = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i)) == array->dimensions[i];
    Py_XDECREF(shape);
    PyErr_Clear();
    return same;
}

PyDoc_STRVAR(check_ndarray_doc,
"check_ndarray(array, data_pointer, nd, base, dtype)\n--\n\n"
"Say whether the fields of a NumPy array stand where the walker reads them.");

static PyObject *check_ndarray(PyObject *module, PyObject *args)
{
    PyObject *o, *base, *dtype;
    unsigned long long data;
    int nd;
    if (!PyArg_ParseTuple(args, "OKiOO:check_ndarray", &o, &data, &nd, &base, &dtype))
        return NULL;
    const Array *array = (Array *)o;
    if (Py_TYPE(o)->tp_basicsize < (Py_ssize_t)sizeof(Array) ||
        Py_TYPE(dtype)->tp_basicsize < (Py_ssize_t)sizeof(Descr))
        Py_RETURN_FALSE;
    bool same = (uintptr_t)array->data == (uintptr_t)data && array->nd == nd &&
                array->base == (base == Py_None ? NULL : base) && array->descr == dtype;
    if (!same || !kind_is(dtype) || !shape_is(o, array))
        Py_RETURN_FALSE;
    PyObject *flags = PyObject_GetAttrString(o, "flags");
    same = flags && attribute_is(flags, "num", array->flags);
    Py_XDECREF(flags);
    PyErr_Clear();
    return PyBool_FromLong(same);
}

/* Objects whose contents are known, for the checks. `instances`: (instance, its `__dict__` or None,
   the values by the order of NAMES, None where there is none). */
static const char PROBES[] =
    "class Probe:\n"
    "    pass\n"
    "NAMES = ('probe_a', 'probe_b', 'probe_c', 'probe_d')\n"
    "def made(values, gone=()):\n"
    "    probe = Probe()\n"
    "    for name, value in zip(NAMES, values):\n"
    "        if value is not None:\n"
    "            setattr(probe, name, value)\n"
    "    for name in gone:\n"
    "        delattr(probe, name)\n"
    "    left = tuple(None if n in gone else v for n, v in zip(NAMES, values))\n"
    "    return probe, left\n"
    "a, b, c, d = [1.5], [2.5], [3.5], [4.5]\n"
    "instances = []\n"
    "for values, gone in [((a, b, c, d), ()), ((a, None, c, None), ()), ((None, b, None, d), ()),\n"
    "                     ((a, b, c, d), ('probe_b',)), ((a, None, None, None), ('probe_a',))]:\n"
    "    probe, left = made(values, gone)\n"
    "    instances.append((probe, None, left))\n"
    "with_dict, left = made((a, b, None, d))\n"
    "instances.append((with_dict, with_dict.__dict__, None))\n"
    "dicts = [with_dict.__dict__]\n"
    "for n in (*range(20), 42, 43, 85, 86, 100, 170, 171, 300, 600, 1000):\n"
    "    dicts.append({i: a for i in range(n)})\n"
    "    dicts.append({'probe_%d' % i: b for i in range(n)})\n"
    "    dicts.append(dict.fromkeys(range(n)))\n"
    "    shrunk = {'probe_%d' % i: c for i in range(n)}\n"
    "    for i in range(0, n, 3):\n"
    "        del shrunk['probe_%d' % i]\n"
    "    dicts.append(shrunk)\n"
    "    dicts.append(shrunk.copy())\n"
    "def enclosing(cell):\n"
    "    def function(first=a, *, second: int = b) -> float:\n"
    "        'Text.'\n"
    "        return cell\n"
    "    function.attribute = c\n"
    "    return function\n"
    "function = enclosing(d)\n"
    "def stops(first, second):\n"
    "    third = first\n"
    "    yield third\n"
    "waits = stops(a, b)\n"
    "next(waits)\n"
    "def fails(first, second):\n"
    "    third = second\n"
    "    raise KeyError\n"
    "try:\n"
    "    fails(c, d)\n"
    "except KeyError as error:\n"
    "    frame = error.__traceback__.tb_next.tb_frame\n";

static bool same_size(PyObject *method, PyObject *o, size_t expected)
{
    PyObject *answer = PyObject_CallOneArg(method, o);
    size_t bytes = answer ? PyLong_AsSize_t(answer) : 0;
    Py_XDECREF(answer);
    PyErr_Clear();
    return bytes == expected;
}

/* The size is compared first: it depends on every field that says where the entries are. */
static bool dict_is_read_right(PyObject *o, PyObject *method)
{
    TypeInfo info = {.basic = PyDict_Type.tp_basicsize};
    PyDictObject *dict = (PyDictObject *)o;
    Keys *keys = (Keys *)dict->ma_keys;
    if (!keys || keys->log2_size > 20 || keys->log2_index_bytes > 23 || keys->kind > 2 ||
        keys->nentries < 0 || keys->nentries > 2000 || keys->usable < 0 || keys->usable > 4000 ||
        !same_size(method, o, dict_size(&info, o)))
        return false;
    if (dict->ma_values)
        return true; /* read by the check of instances */
    PyObject *key, *value;
    Py_ssize_t at = 0, i = 0;
    while (PyDict_Next(o, &at, &key, &value)) {
        for (;; i++) {
            if (i >= keys->nentries)
                return false;
            PyObject *k, *v;
            if (keys->kind == GENERAL_KEYS) {
                GeneralEntry *e = (GeneralEntry *)entries_of(keys) + i;
                k = e->key, v = e->value;
            }
            else {
                UnicodeEntry *e = (UnicodeEntry *)entries_of(keys) + i;
                k = e->key, v = e->value;
            }
            if (!v)
                continue;
            if (k != key || v != value)
                return false;
            i++;
            break;
        }
    }
    return true;
}

static bool check_dicts(PyObject *probes)
{
    PyObject *dicts = PyDict_GetItemString(probes, "dicts"), *method = own_sizeof(&PyDict_Type);
    if (!dicts || !PyList_Check(dicts) || !method)
        return false;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts); i++)
        if (!dict_is_read_right(PyList_GET_ITEM(dicts, i), method))
            return false;
    return true;
}

static bool shared_names_are(PyTypeObject *type, PyObject *names)
{
    Keys *keys = (Keys *)((PyHeapTypeObject *)type)->ht_cached_keys;
    PyObject *method = own_sizeof(&PyType_Type);
    if (!keys || !method || keys->log2_size > 20 || keys->log2_index_bytes > 23 ||
        keys->nentries != PyTuple_GET_SIZE(names) ||
        !same_size(method, (PyObject *)type, class_size((PyObject *)type)))
        return false;
    UnicodeEntry *entries = entries_of(keys);
    for (Py_ssize_t i = 0; i < keys->nentries; i++)
        if (entries[i].key != PyTuple_GET_ITEM(names, i))
            return false;
    return true;
}

static bool instance_is_read_right(PyObject *o, PyObject *dict, PyObject *expected)
{
    TypeInfo info = {.type = Py_TYPE(o), .basic = Py_TYPE(o)->tp_basicsize, .managed_dict = true};
    if (instance_dict(&info, o) != (dict == Py_None ? NULL : dict))
        return false;
    if (expected == Py_None)
        return true;
    Values *values = inline_values(&info, o);
    for (Py_ssize_t i = 0; values && i < PyTuple_GET_SIZE(expected); i++) {
        PyObject *value = PyTuple_GET_ITEM(expected, i);
        if (values->values[i] != (value == Py_None ? NULL : value))
            return false;
    }
    return values != NULL;
}

static bool check_attributes(PyObject *probes)
{
    PyTypeObject *type = (PyTypeObject *)PyDict_GetItemString(probes, "Probe");
    PyObject *names = PyDict_GetItemString(probes, "NAMES");
    PyObject *instances = PyDict_GetItemString(probes, "instances");
    if (!type || !names || !instances || !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        return false;
#if AT_LEAST(13)
    if (!(type->tp_flags & Py_TPFLAGS_INLINE_VALUES))
        return false;
#endif
    if (bytes_in_front(type) != 32 || !shared_names_are(type, names))
        return false;
    attributes_ok = true; /* for instance_dict() */
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(instances); i++) {
        PyObject *row = PyList_GET_ITEM(instances, i);
        if (!instance_is_read_right(PyTuple_GET_ITEM(row, 0), PyTuple_GET_ITEM(row, 1),
                                    PyTuple_GET_ITEM(row, 2)))
            return false;
    }
    return true;
}

static bool variables_are(PyObject *o, PyObject *a, PyObject *b, PyObject *c)
{
    TypeInfo info = {.basic = Py_TYPE(o)->tp_basicsize, .ask = own_sizeof(Py_TYPE(o))};
    uintptr_t *at = (uintptr_t *)((char *)o + info.basic), tags = 3;
    return info.ask && slots_behind(&info, o) >= 3 && (at[0] & ~tags) == (uintptr_t)a && (at[1] & ~tags) == (uintptr_t)b &&
           (at[2] & ~tags) == (uintptr_t)c;
}

static bool check_locals(PyObject *probes)
{
    PyObject *waits = PyDict_GetItemString(probes, "waits");
    PyObject *frame = PyDict_GetItemString(probes, "frame");
    PyObject *a = PyDict_GetItemString(probes, "a"), *b = PyDict_GetItemString(probes, "b");
    PyObject *c = PyDict_GetItemString(probes, "c"), *d = PyDict_GetItemString(probes, "d");
    return waits && frame && PyGen_CheckExact(waits) && PyFrame_Check(frame) &&
           PyGen_Type.tp_itemsize == sizeof(PyObject *) &&
           PyFrame_Type.tp_itemsize == sizeof(PyObject *) && variables_are(waits, a, b, a) &&
           variables_are(frame, c, d, d);
}

typedef struct { uintptr_t targets[64]; size_t n; } Shown;

static int note_shown(PyObject *target, void *to)
{
    Shown *shown = to;
    if (shown->n < 64)
        shown->targets[shown->n++] = (uintptr_t)target;
    return 0;
}

/* Whether traverse shows exactly the references of a function that are read from its fields. */
static bool check_functions(PyObject *probes)
{
    PyObject *function = PyDict_GetItemString(probes, "function");
    if (!function || !PyFunction_Check(function) || !PyFunction_Type.tp_traverse)
        return false;
    Walk *w = map_memory(sizeof(Walk));
    if (!w)
        return false;
    Shown shown = {.n = 0};
    Edge edges[MOST_FUNCTION_REFERENCES];
    unsigned n = function_references(w, function, edges);
    munmap(w, sizeof(Walk));
    PyFunction_Type.tp_traverse(function, note_shown, &shown);
    if (n != shown.n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        size_t at = 0;
        while (at < shown.n && shown.targets[at] != edges[i].target)
            at++;
        if (at == shown.n)
            return false;
        shown.targets[at] = 0;
    }
    return true;
}

#ifdef HAS_LINKS
static bool threshold_is(PyObject *thresholds, int i, int found)
{
    return PyLong_AsLong(PyTuple_GET_ITEM(thresholds, i)) == found;
}

/* A new object is the last of the youngest list, so its next is the head of that list. */
static void find_generations(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *thresholds = gc ? PyObject_CallMethod(gc, "get_threshold", NULL) : NULL;
    int collecting = PyGC_Disable();
    PyObject *fresh = PyList_New(0);
    if (thresholds && PyTuple_Check(thresholds) && PyTuple_GET_SIZE(thresholds) == 3 && fresh) {
        Link *link = (Link *)fresh - 1;
        Generations *found = (Generations *)link->next;
        if (found && (Link *)found->generations[0].head.prev == link &&
            found->generation0 == &found->generations[0].head &&
            threshold_is(thresholds, 0, found->generations[0].threshold) &&
            threshold_is(thresholds, 1, found->generations[1].threshold) &&
            threshold_is(thresholds, 2, found->generations[2].threshold))
            generations = found;
    }
    Py_XDECREF(fresh);
    if (collecting)
        PyGC_Enable();
    Py_XDECREF(thresholds);
    Py_XDECREF(gc);
    PyErr_Clear();
}
#else
static void find_generations(void) {}
#endif

/* Compare what the layouts give with the truth; what differs is not used. */
static void check_layouts(void)
{
    PyObject *probes = PyDict_New();
    PyObject *done = NULL;
    if (probes && PyDict_SetItemString(probes, "__builtins__", PyEval_GetBuiltins()) == 0)
        done = PyRun_String(PROBES, Py_file_input, probes, probes);
    if (done) {
        dicts_ok = check_dicts(probes);
        attributes_ok = dicts_ok && check_attributes(probes);
        locals_ok = check_locals(probes);
        functions_ok = check_functions(probes);
    }
    Py_XDECREF(done);
    if (probes)
        PyDict_Clear(probes);
    Py_XDECREF(probes);
    PyErr_Clear();
}

PyDoc_STRVAR(use_layouts_doc,
"use_layouts(wanted)\n--\n\n"
"For tests: read layouts that CPython does not publish, if they were found right, or none of them.");

static struct { bool dicts, attributes, locals, functions; Generations *generations; } checked;

static void set_layouts(bool wanted)
{
    dicts_ok = wanted && checked.dicts;
    attributes_ok = wanted && checked.attributes;
    locals_ok = wanted && checked.locals;
    functions_ok = wanted && checked.functions;
    generations = wanted ? checked.generations : NULL;
}

static PyObject *use_layouts(PyObject *module, PyObject *wanted)
{
    set_layouts(wanted == Py_True);
    Py_RETURN_NONE;
}

/* ---- The module -------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"walk", (PyCFunction)(void *)walk, METH_FASTCALL, walk_doc},
    {"thread_dicts", thread_dicts, METH_NOARGS, thread_dicts_doc},
    {"check_ndarray", check_ndarray, METH_VARARGS, check_ndarray_doc},
    {"use_layouts", use_layouts, METH_O, use_layouts_doc},
    {NULL},
};

static int add_flag(PyObject *module, const char *name, bool value)
{
    return PyModule_AddObjectRef(module, name, value ? Py_True : Py_False);
}

static int execute(PyObject *module)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_RuntimeError, "the walker needs the GIL");
    return -1;
#endif
    str_module = PyUnicode_InternFromString("__module__");
    str_sizeof = PyUnicode_InternFromString("__sizeof__");
    if (!str_module || !str_sizeof)
        return -1;
#if !AT_LEAST(12)
    PyObject *gc = PyImport_ImportModule("gc");
    get_objects = gc ? PyObject_GetAttrString(gc, "get_objects") : NULL;
    Py_XDECREF(gc);
    if (!get_objects)
        return -1;
#endif
    code_sizeof = own_sizeof(&PyCode_Type);
    check_layouts();
    find_generations();
    checked.dicts = dicts_ok;
    checked.attributes = attributes_ok;
    checked.locals = locals_ok;
    checked.functions = functions_ok;
    checked.generations = generations;
    walked_type = PyStructSequence_NewType(&walked_description);
    if (!walked_type)
        return -1;
    bool all = dicts_ok && attributes_ok && locals_ok && functions_ok;
    return add_flag(module, "layout_ok", all) || add_flag(module, "dicts_ok", dicts_ok) ||
                   add_flag(module, "attributes_ok", attributes_ok) ||
                   add_flag(module, "locals_ok", locals_ok) ||
                   add_flag(module, "functions_ok", functions_ok) ||
                   add_flag(module, "links_ok", generations != NULL)
               ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#if AT_LEAST(12)
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "leakscope.observe.heap._walker",
    .m_doc = "Write every object, its size and what it refers to, to a file.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__walker(void) { return PyModuleDef_Init(&definition); }
