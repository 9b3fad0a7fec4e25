//! A meta command whose flags are parsed and whose key is decoded.

use cachemark_protocol::meta::request::{MetaOptions, MetaRequest};
use cachemark_storage::Lookup;

use crate::commands::context::RequestContext;
use crate::commands::meta::reply::append_echo;

pub struct MetaCommand<'a, 'b> {
    pub request: &'a MetaRequest<'a>,
    pub options: &'a MetaOptions<'a>,
    pub key: &'a [u8],
    pub lookup: Option<Lookup<'a>>,
    pub context: &'a mut RequestContext<'b>,
}

impl MetaCommand<'_, '_> {
    /// Reply to a miss, unless the command is quiet.
    pub fn miss(&mut self, code: &[u8]) {
        if !self.options.quiet {
            self.reply_code(code);
        }
    }

    /// Reply with a code and the flags that every reply returns.
    pub fn reply_code(&mut self, code: &[u8]) {
        let MetaCommand { request, options, context, .. } = self;
        let out = &mut *context.out;
        out.extend_from_slice(code);
        for letter in options.letters.iter() {
            append_echo(out, letter, request, options);
        }
        out.extend_from_slice(b"\r\n");
    }
}
