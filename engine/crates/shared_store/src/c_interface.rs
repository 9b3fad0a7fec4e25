//! The functions of `include/cachemark_store.h`, which says what each of them does.
//!
//! No function panics across the border: what the caller can do wrong is a status, with a text for
//! `cm_store_error`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::OpenOptions;
use std::io::{BufWriter, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::slice;

use cachemark_storage::{Arithmetic, Mode, Outcome, Owner};

use crate::clock::now_s;
use crate::dump::write_items;
use crate::named_store::{NamedStore, Settings};
use crate::status::{
    BUFFER, EXISTS, INVALID, NO_ROOM, NOT_A_NUMBER, NOT_FOUND, OK, SYSTEM, failed, last_error,
    status,
};

/// The version of this interface. It changes whenever a program has to be compiled anew.
const ABI: u32 = 1;
/// As in memcached.
const KEY_BYTES_MAX: usize = 250;

/// In place of a hash power.
const GROWS: c_int = -1;

/// The figures of `cm_store_stat`. New fields come at the end.
#[repr(C)]
pub struct Statistics {
    size: usize,
    limit_bytes: u64,
    item_bytes: u64,
    table_bytes: u64,
    items: u64,
    evictions: u64,
}

/// Do something with a name or a path, or refuse it.
///
/// # Safety
///
/// `text` is null or a string with a zero at its end.
unsafe fn with_text(text: *const c_char, act: impl FnOnce(&str) -> c_int) -> c_int {
    if text.is_null() {
        return failed(INVALID, "a name or a path is NULL");
    }
    // SAFETY: the caller's promise.
    match unsafe { CStr::from_ptr(text) }.to_str() {
        Ok(text) => act(text),
        Err(_) => failed(INVALID, "a name or a path is no UTF-8"),
    }
}

/// # Safety
///
/// `start` leads to this many bytes, which no thread changes meanwhile. It may be null if there are none.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(start.cast(), length) }
}

/// Do something with a key, or refuse it.
///
/// # Safety
///
/// As `bytes`.
unsafe fn with_key(
    (start, length): (*const c_void, usize),
    act: impl FnOnce(&[u8]) -> c_int,
) -> c_int {
    if !(1..=KEY_BYTES_MAX).contains(&length) || start.is_null() {
        return failed(INVALID, format!("a key has 1 to {KEY_BYTES_MAX} bytes, not {length}"));
    }
    // SAFETY: the caller's promise.
    act(unsafe { bytes(start, length) })
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
    last_error()
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
    let Ok(memory_bytes) = usize::try_from(memory_bytes) else {
        return failed(INVALID, "more memory than there are addresses");
    };
    // A table of 2^0 slots is refused like all that are too small.
    let hash_power = (hash_power != GROWS).then(|| u32::try_from(hash_power).unwrap_or(0));
    let settings = Settings { memory_bytes, hash_power, mode };
    // SAFETY: the header asks for it.
    unsafe { with_text(name, |name| status(NamedStore::create(name, &settings).map(drop))) }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_open(name: *const c_char, store: *mut *mut NamedStore) -> c_int {
    // SAFETY: the header asks for it.
    unsafe { open(name, Owner::Own, store) }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_open_of(
    name: *const c_char,
    user: u32,
    store: *mut *mut NamedStore,
) -> c_int {
    // SAFETY: the header asks for it.
    unsafe { open(name, Owner::User(user), store) }
}

/// # Safety
///
/// As `cm_store_open`.
unsafe fn open(name: *const c_char, owner: Owner, store: *mut *mut NamedStore) -> c_int {
    if store.is_null() {
        return failed(INVALID, "there is no place for the store");
    }
    let open = |name: &str| {
        let opened = Box::new(NamedStore::open_of(name, owner)?);
        // SAFETY: the header asks for a place to write to.
        unsafe { *store = Box::into_raw(opened) };
        Ok(())
    };
    // SAFETY: the header asks for it.
    unsafe { with_text(name, |name| status(open(name))) }
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
    unsafe { with_text(name, |name| status(NamedStore::destroy(name))) }
}

/// # Safety
///
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cm_store_destroy_of(name: *const c_char, user: u32) -> c_int {
    // SAFETY: the header asks for it.
    unsafe { with_text(name, |name| status(NamedStore::destroy_of(name, Owner::User(user)))) }
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
    let get = |key: &[u8]| {
        let read = store.get(key, None, now_s(), |item| {
            let length = item.value.len();
            let fits = length <= capacity;
            if fits && length > 0 {
                // SAFETY: the header asks for a buffer of this capacity, which only the caller has.
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
    };
    // SAFETY: the header asks for it.
    unsafe { with_key((key_start, key_length), get) }
}

/// # Safety
///
/// As the functions that call it.
unsafe fn put(
    store: &NamedStore,
    mode: Mode,
    key: (*const c_void, usize),
    (value_start, value_length): (*const c_void, usize),
    flags: u32,
    exptime: i64,
) -> c_int {
    // SAFETY: the header asks for it.
    let value = unsafe { bytes(value_start, value_length) };
    let put = |key: &[u8]| match store.store(mode, key, flags, exptime, value, now_s()) {
        Some(Outcome::Stored) => OK,
        Some(Outcome::NotFound) => NOT_FOUND,
        Some(Outcome::NotStored | Outcome::Exists) => EXISTS,
        None => failed(NO_ROOM, "the store has no room for a value of this length"),
    };
    // SAFETY: the header asks for it.
    unsafe { with_key(key, put) }
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
    unsafe { put(store, Mode::Set, key, value, flags, exptime) }
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
    unsafe { put(store, Mode::Add, key, value, flags, exptime) }
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
    let delete = |key: &[u8]| if store.delete(key, now_s()) { OK } else { NOT_FOUND };
    // SAFETY: the header asks for it.
    unsafe { with_key((key_start, key_length), delete) }
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
    let add = |key: &[u8]| match store.arithmetic(key, delta.unsigned_abs(), delta >= 0, now_s()) {
        Arithmetic::Number(after) => {
            if let Some(place) = number {
                *place = after;
            }
            OK
        }
        Arithmetic::NonNumeric => failed(NOT_A_NUMBER, "the value is no number"),
        Arithmetic::NoRoom => failed(NO_ROOM, "the store has no room for the new number"),
        Arithmetic::NotFound | Arithmetic::Exists => NOT_FOUND,
    };
    // SAFETY: the header asks for it.
    unsafe { with_key((key_start, key_length), add) }
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
    let dump = |path: &str| {
        // As private as a store is by default.
        let mut options = OpenOptions::new();
        let written = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|file| write_items(store, values != 0, &mut BufWriter::new(file)));
        match written {
            Ok(_) => OK,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                failed(EXISTS, error.to_string())
            }
            Err(error) => failed(SYSTEM, error.to_string()),
        }
    };
    // SAFETY: the header asks for it.
    unsafe { with_text(path, dump) }
}
