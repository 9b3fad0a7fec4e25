//! The functions of `include/cachemark_store.h`, which says what each of them does.
//!
//! No function panics across the border: what the caller can do wrong is a status, with a text for
//! `cm_store_error`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::slice;

use cachemark_storage::{Arithmetic, Mode, Outcome};

use crate::clock::now_s;
use crate::dump::write_items;
use crate::named_store::{NamedStore, Settings};

/// The version of this interface. It changes whenever a program has to be compiled anew.
const ABI: u32 = 1;
/// As in memcached.
const KEY_BYTES_MAX: usize = 250;

const OK: c_int = 0;
const NOT_FOUND: c_int = 1;
const EXISTS: c_int = 2;
const NO_ROOM: c_int = 3;
const BUFFER: c_int = 4;
const NOT_A_NUMBER: c_int = 5;
const INVALID: c_int = -1;
const SYSTEM: c_int = -2;

/// What `cm_store_stat` fills in. New fields come at the end.
#[repr(C)]
pub struct Statistics {
    size: usize,
    limit_bytes: u64,
    item_bytes: u64,
    table_bytes: u64,
    items: u64,
    evictions: u64,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

fn failed(status: c_int, text: impl Into<Vec<u8>>) -> c_int {
    let text = CString::new(text).unwrap_or_default();
    ERROR.with_borrow_mut(|error| *error = text);
    status
}

fn refused(error: &io::Error) -> c_int {
    let status = match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::AlreadyExists => EXISTS,
        ErrorKind::InvalidInput => INVALID,
        _ => SYSTEM,
    };
    failed(status, error.to_string())
}

/// # Safety
///
/// `text` is null or a string with a zero at its end.
unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, c_int> {
    if text.is_null() {
        return Err(failed(INVALID, "a name or a path is NULL"));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| failed(INVALID, "a name or a path is no UTF-8"))
}

/// # Safety
///
/// `start` leads to this many bytes, which nobody changes meanwhile. It may be null if there are none.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(start.cast(), length) }
}

/// # Safety
///
/// As `bytes`.
unsafe fn key<'a>(start: *const c_void, length: usize) -> Result<&'a [u8], c_int> {
    if !(1..=KEY_BYTES_MAX).contains(&length) || start.is_null() {
        return Err(failed(INVALID, format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {length}")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { bytes(start, length) })
}

/// The status of what may fail.
fn status(result: Result<c_int, c_int>) -> c_int {
    result.unwrap_or_else(|status| status)
}

#[unsafe(no_mangle)]
pub extern "C" fn cm_store_abi() -> u32 {
    ABI
}

#[unsafe(no_mangle)]
pub extern "C" fn cm_store_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[unsafe(no_mangle)]
pub extern "C" fn cm_store_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_init(
    name: *const c_char,
    memory_bytes: u64,
    hash_power: c_int,
    mode: u32,
) -> c_int {
    // SAFETY: the header asks for it.
    let name = match unsafe { text(name) } {
        Ok(name) => name,
        Err(status) => return status,
    };
    let Ok(memory_bytes) = usize::try_from(memory_bytes) else {
        return failed(INVALID, "more memory than there are addresses");
    };
    let hash_power = u32::try_from(hash_power).ok();
    let settings = Settings { memory_bytes, hash_power, mode };
    NamedStore::create(name, &settings).map_or_else(|error| refused(&error), |_| OK)
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_open(name: *const c_char, store: *mut *mut NamedStore) -> c_int {
    // SAFETY: the header asks for it.
    let name = match unsafe { text(name) } {
        Ok(name) => name,
        Err(status) => return status,
    };
    if store.is_null() {
        return failed(INVALID, "there is no place for the store");
    }
    match NamedStore::open(name) {
        Ok(opened) => {
            // SAFETY: the header asks for a place to write to.
            unsafe { *store = Box::into_raw(Box::new(opened)) };
            OK
        }
        Err(error) => refused(&error),
    }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_close(store: *mut NamedStore) {
    if !store.is_null() {
        // SAFETY: it came from `cm_store_open`, and is not used any more.
        drop(unsafe { Box::from_raw(store) });
    }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_destroy(name: *const c_char) -> c_int {
    // SAFETY: the header asks for it.
    match unsafe { text(name) } {
        Ok(name) => NamedStore::destroy(name).map_or_else(|error| refused(&error), |()| OK),
        Err(status) => status,
    }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_get(
    store: &NamedStore,
    key_start: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_length: Option<&mut usize>,
    flags: Option<&mut u32>,
) -> c_int {
    // SAFETY: the header asks for it.
    let key = match unsafe { key(key_start, key_length) } {
        Ok(key) => key,
        Err(status) => return status,
    };
    let read = store.get(key, None, now_s(), |item| {
        let length = item.value.len();
        let fits = length <= capacity;
        if fits && length > 0 {
            // SAFETY: the header asks for a buffer of this capacity, which is nobody else's.
            unsafe { buffer.cast::<u8>().copy_from(item.value.as_ptr(), length) };
        }
        (length, item.flags, fits)
    });
    let Some((length, its_flags, fits)) = read else { return NOT_FOUND };
    if let Some(place) = value_length {
        *place = length;
    }
    if let Some(place) = flags {
        *place = its_flags;
    }
    if fits { OK } else { BUFFER }
}

/// # Safety
///
/// As the functions that call it.
unsafe fn put(
    store: &NamedStore,
    mode: Mode,
    (key_start, key_length): (*const c_void, usize),
    (value_start, value_length): (*const c_void, usize),
    flags: u32,
    exptime: i64,
) -> Result<c_int, c_int> {
    // SAFETY: the header asks for it.
    let (key, value) = unsafe { (key(key_start, key_length)?, bytes(value_start, value_length)) };
    Ok(match store.store(mode, key, flags, exptime, value, now_s()) {
        Some(Outcome::Stored) => OK,
        Some(Outcome::NotFound) => NOT_FOUND,
        Some(Outcome::NotStored | Outcome::Exists) => EXISTS,
        None => failed(NO_ROOM, "the store has no room for a value of this length"),
    })
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_set(
    store: &NamedStore,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    flags: u32,
    exptime: i64,
) -> c_int {
    let (key, value) = ((key, key_length), (value, value_length));
    // SAFETY: the header asks for it.
    status(unsafe { put(store, Mode::Set, key, value, flags, exptime) })
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_add(
    store: &NamedStore,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    flags: u32,
    exptime: i64,
) -> c_int {
    let (key, value) = ((key, key_length), (value, value_length));
    // SAFETY: the header asks for it.
    status(unsafe { put(store, Mode::Add, key, value, flags, exptime) })
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_delete(
    store: &NamedStore,
    key_start: *const c_void,
    key_length: usize,
) -> c_int {
    // SAFETY: the header asks for it.
    match unsafe { key(key_start, key_length) } {
        Ok(key) if store.delete(key, now_s()) => OK,
        Ok(_) => NOT_FOUND,
        Err(status) => status,
    }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_incr(
    store: &NamedStore,
    key_start: *const c_void,
    key_length: usize,
    delta: i64,
    number: Option<&mut u64>,
) -> c_int {
    // SAFETY: the header asks for it.
    let key = match unsafe { key(key_start, key_length) } {
        Ok(key) => key,
        Err(status) => return status,
    };
    match store.arithmetic(key, delta.unsigned_abs(), delta >= 0, now_s()) {
        Arithmetic::Number(after) => {
            if let Some(place) = number {
                *place = after;
            }
            OK
        }
        Arithmetic::NonNumeric => failed(NOT_A_NUMBER, "the value is no number"),
        Arithmetic::NoRoom => failed(NO_ROOM, "the store has no room for the new number"),
        Arithmetic::NotFound | Arithmetic::Exists => NOT_FOUND,
    }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_flush(store: &NamedStore) -> c_int {
    store.flush(0, now_s());
    OK
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_stat(store: &NamedStore, statistics: &mut Statistics) -> c_int {
    if statistics.size < size_of::<Statistics>() {
        return failed(INVALID, "set the field `size` to the size of cm_store_statistics");
    }
    let usage = store.usage(now_s());
    *statistics = Statistics {
        size: size_of::<Statistics>(),
        limit_bytes: usage.limit_bytes,
        item_bytes: usage.bytes,
        table_bytes: usage.table_bytes,
        items: usage.items,
        evictions: usage.counters.evictions,
    };
    OK
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_dump(
    store: &NamedStore,
    path: *const c_char,
    values: c_int,
) -> c_int {
    // SAFETY: the header asks for it.
    let path = match unsafe { text(path) } {
        Ok(path) => path,
        Err(status) => return status,
    };
    let written = File::create_new(path)
        .and_then(|file| write_items(store, values != 0, &mut BufWriter::new(file)));
    written.map_or_else(
        |error| match error.kind() {
            ErrorKind::AlreadyExists => failed(EXISTS, error.to_string()),
            _ => failed(SYSTEM, error.to_string()),
        },
        |_| OK,
    )
}
