//! The flags of the last request of the meta protocol: most clients ask for the same again and
//! again, and what is the same need not be read again.

use cachemark_protocol::meta::request::{MetaFault, MetaOptions, MetaRequest, MetaVerb};

/// The flags that were read last of an input, and what they ask for.
pub struct LastFlags<'a> {
    verb: MetaVerb,
    flags: &'a [u8],
    options: MetaOptions<'a>,
}

impl Default for LastFlags<'_> {
    /// Those of a `mg` that has none.
    fn default() -> Self {
        LastFlags { verb: MetaVerb::Get, flags: b"", options: MetaOptions::default() }
    }
}

impl<'a> LastFlags<'a> {
    /// What a request's flags ask for. They mean what they mean by their verb.
    #[inline]
    pub fn of(&mut self, request: &MetaRequest<'a>) -> Result<&MetaOptions<'a>, MetaFault> {
        if (self.verb, self.flags) != (request.verb, request.flags()) {
            self.read(request)?;
        }
        Ok(&self.options)
    }

    #[inline(never)]
    fn read(&mut self, request: &MetaRequest<'a>) -> Result<(), MetaFault> {
        let options = request.options()?;
        *self = LastFlags { verb: request.verb, flags: request.flags(), options };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cachemark_protocol::text::command::Command;
    use cachemark_protocol::text::request::{Parsed, parse};

    use super::*;

    #[test]
    fn flags_mean_what_they_mean_by_their_verb() {
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
        let mut last = LastFlags::default();
        for line in lines {
            let Parsed::Command(Command::Meta(request), _) = parse(line) else {
                panic!("{line:?}")
            };
            assert_eq!(last.of(&request).copied(), request.options(), "{line:?}");
        }
    }
}
