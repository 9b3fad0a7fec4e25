//! The parsed flags of the last meta command. Most clients send the same flags again and again, and equal
//! flags need not be parsed again.

use cachemark_protocol::meta::request::{MetaError, MetaOptions, MetaRequest, MetaVerb};

/// The flags that were parsed last, and their options.
pub struct FlagCache<'a> {
    verb: MetaVerb,
    flags: &'a [u8],
    options: MetaOptions<'a>,
}

impl Default for FlagCache<'_> {
    /// The options of an `mg` without flags.
    fn default() -> Self {
        FlagCache { verb: MetaVerb::Get, flags: b"", options: MetaOptions::default() }
    }
}

impl<'a> FlagCache<'a> {
    /// The options of a command. The same flags have another meaning with another verb.
    #[inline]
    pub fn options_of(&mut self, request: &MetaRequest<'a>) -> Result<&MetaOptions<'a>, MetaError> {
        if (self.verb, self.flags) != (request.verb, request.flags()) {
            self.parse(request)?;
        }
        Ok(&self.options)
    }

    #[inline(never)]
    fn parse(&mut self, request: &MetaRequest<'a>) -> Result<(), MetaError> {
        let options = request.options()?;
        *self = FlagCache { verb: request.verb, flags: request.flags(), options };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cachemark_protocol::text::command::Command;
    use cachemark_protocol::text::request::{Parsed, parse};

    use super::*;

    #[test]
    fn flags_are_parsed_again_for_another_verb() {
        let lines: [&[u8]; 9] = [
            b"mg a\r\n",
            b"mg a v O1\r\n",
            b"mg b v O1\r\n",
            b"mg b v O2\r\n",
            b"mg b v !\r\n",
            b"mg b v O2\r\n",
            b"ma b MI\r\n",
            b"md b MI\r\n",
            b"ms b 1 MI\r\n",
        ];
        let mut cache = FlagCache::default();
        for line in lines {
            let Parsed::Command(Command::Meta(request), _) = parse(line) else {
                panic!("{line:?}")
            };
            assert_eq!(cache.options_of(&request).copied(), request.options(), "{line:?}");
        }
    }
}
