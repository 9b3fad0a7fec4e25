//! `lru_crawler metadump` and `mgdump`: a line for each item, in memcached's form (its doc/protocol.txt,
//! "LRU_Crawler"), which is not recorded as a use of the item. This store has no crawler: the lines are written
//! while the items are iterated.

use cachemark_protocol::meta::request::encode_key;
use cachemark_protocol::percent::append_percent_encoded;
use cachemark_storage::{Item, SizeClasses};

use crate::commands::context::RequestContext;
use crate::commands::meta::reply::append_details;
use crate::state::size_classes;

/// The form of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// Key and details.
    Details,
    /// A meta get of the key.
    Gets,
}

/// A client's request for a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump {
    pub form: DumpForm,
    /// The classes of sizes whose items are shown, a bit for each number.
    pub classes: u64,
}

impl DumpForm {
    /// The reply where dumps are switched off.
    pub fn refusal(self) -> &'static [u8] {
        match self {
            DumpForm::Details => b"ERROR metadump not allowed\r\n",
            DumpForm::Gets => b"ERROR key dump not allowed\r\n",
        }
    }

    /// The reply where replies to other commands wait.
    pub fn pipelined(self) -> &'static [u8] {
        match self {
            DumpForm::Details => b"ERROR cannot pipeline other commands before metadump\r\n",
            DumpForm::Gets => b"ERROR cannot pipeline other commands before mgdump\r\n",
        }
    }

    /// The line behind the last item.
    fn end(self) -> &'static [u8] {
        match self {
            DumpForm::Details => b"END\r\n",
            DumpForm::Gets => b"EN\r\n",
        }
    }
}

/// Append the lines of the parts of the store from `resume_at` on. False if the output became too long
/// before the last part.
pub fn write(
    dump: Dump,
    resume_at: &mut usize,
    context: &mut RequestContext<'_>,
    pause_at: usize,
) -> bool {
    if *resume_at == 0 {
        context.out.extend_from_slice(b"OK\r\n");
    }
    while let Some(next) = write_part(dump, *resume_at, context) {
        *resume_at = next;
        if context.out.len() >= pause_at {
            return false;
        }
    }
    *resume_at = 0;
    context.out.extend_from_slice(dump.form.end());
    true
}

/// Append the lines of one part and return the next; `None` after the last.
fn write_part(dump: Dump, part: usize, context: &mut RequestContext<'_>) -> Option<usize> {
    let RequestContext { state, now_s, out, .. } = context;
    let classes = state.store.size_classes();
    state.store.for_each_in_part(part, *now_s, |key, item| {
        if dump.classes >> size_classes::number(classes, key, item) & 1 == 0 {
            return;
        }
        match dump.form {
            DumpForm::Gets => append_get(out, key, item),
            DumpForm::Details => append_item(out, key, item, classes),
        }
    })
}

fn append_item(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, classes: Option<&SizeClasses>) {
    out.extend_from_slice(b"key=");
    append_percent_encoded(out, key);
    let expires_s = if item.expires_s == 0 { -1 } else { i64::from(item.expires_s) };
    append_details(out, key, item, expires_s, item.accessed_s, classes);
    out.extend_from_slice(format!(" flags={} \n", item.flags).as_bytes());
}

/// Append a meta get that finds the item.
fn append_get(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>) {
    out.extend_from_slice(b"mg ");
    if item.marks.binary_key {
        encode_key(key, out);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
    out.extend_from_slice(b"\r\n");
}
