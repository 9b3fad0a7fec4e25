//! Parses the meta commands for a server: a verb of two letters, a key, and flags of one letter each, some with
//! a token. (memcached's doc/protocol.txt, "Meta Commands"; where that says nothing, the behaviour of 1.6.45.)

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

use crate::limits::KEY_BYTES_MAX;
use crate::words::{Words, exptime, unsigned};

/// A line with more words is refused.
const WORDS_MAX: usize = 20;
const OPAQUE_BYTES_MAX: usize = 32;
/// As memcached decodes: bits that a key does not need may be anything.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaVerb {
    /// `mg`
    Get,
    /// `ms`
    Set,
    /// `md`
    Delete,
    /// `ma`
    Arithmetic,
    /// `me`
    Debug,
}

/// A command whose flags are not parsed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaRequest<'a> {
    pub verb: MetaVerb,
    /// The key as it was sent, which may be base64.
    pub key: &'a [u8],
    /// The length of the data behind an `ms`; 0 for other commands.
    pub length: u64,
    pub(crate) flags: Words<'a>,
}

/// Why flags are refused. No letter: a flag that does not even begin as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaError {
    TooMany,
    NoLetter,
    Duplicate,
    Unknown,
    BadToken,
    BadClientFlags,
    BadInitial,
    BadDelta,
    BadKey,
    LongOpaque,
    BadStoreMode,
    BadArithmeticMode,
}

impl MetaError {
    /// The reply line. `ma` has the same one for all errors of a single flag.
    pub fn reply(self, verb: MetaVerb) -> &'static [u8] {
        let coarse = verb == MetaVerb::Arithmetic;
        match self {
            MetaError::NoLetter => b"CLIENT_ERROR bad command line format\r\n",
            MetaError::BadKey if verb == MetaVerb::Debug => {
                b"CLIENT_ERROR bad command line format\r\n"
            }
            MetaError::LongOpaque => b"CLIENT_ERROR opaque token too long\r\n",
            MetaError::BadStoreMode => b"CLIENT_ERROR invalid mode for ms M token\r\n",
            MetaError::BadArithmeticMode => b"CLIENT_ERROR invalid mode for ma M token\r\n",
            _ if coarse => b"CLIENT_ERROR invalid or duplicate flag\r\n",
            MetaError::TooMany => b"CLIENT_ERROR options flags are too long\r\n",
            MetaError::BadClientFlags => b"CLIENT_ERROR bad command line format\r\n",
            MetaError::Duplicate => b"CLIENT_ERROR duplicate flag\r\n",
            MetaError::Unknown => b"CLIENT_ERROR invalid flag\r\n",
            MetaError::BadToken => b"CLIENT_ERROR bad token in command line format\r\n",
            MetaError::BadInitial => b"CLIENT_ERROR invalid numeric initial value\r\n",
            MetaError::BadDelta => b"CLIENT_ERROR invalid numeric delta value\r\n",
            MetaError::BadKey => b"CLIENT_ERROR error decoding key\r\n",
        }
    }
}

/// The mode of a store or of arithmetic: the letter behind the flag `M`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetaMode {
    /// Set, or increment.
    #[default]
    Plain,
    Add,
    Append,
    Prepend,
    Replace,
    Decrement,
}

/// The request of the flags. Times are exptimes, as in classic commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaOptions<'a> {
    /// All letters in their order, which is also the order of the reply.
    pub letters: Letters,
    /// `O` with its token, as the reply returns it.
    pub opaque: &'a [u8],
    /// `b`
    pub base64: bool,
    /// `v`
    pub value: bool,
    /// `q`
    pub quiet: bool,
    /// `u`: the read is not recorded as a use of the item.
    pub no_update: bool,
    /// `h` or `l`: the reply has the state before this use.
    pub access_info: bool,
    /// `I`
    pub invalidate: bool,
    /// `x`
    pub remove_value: bool,
    /// `N`
    pub vivify: Option<i64>,
    /// `R`
    pub recache: Option<i64>,
    /// `T`
    pub exptime: Option<i64>,
    /// `C`: the cas number that the item must have.
    pub expected_cas: Option<u64>,
    /// `E`: the cas number that the item gets.
    pub new_cas: Option<u64>,
    /// `F`
    pub client_flags: u32,
    /// `M`
    pub mode: MetaMode,
    /// `D`; 1 if it is not given.
    pub delta: Option<u64>,
    /// `J`
    pub initial: u64,
}

/// The letters of flags, in the order in which they were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Letters {
    letters: [u8; WORDS_MAX],
    count: usize,
}

impl Letters {
    #[inline]
    fn push(&mut self, letter: u8) {
        self.letters[self.count] = letter;
        self.count += 1;
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        self.letters[..self.count].iter().copied()
    }
}

/// The letters that are valid. Those that only affect the reply are not parsed any further.
const KNOWN: u64 = bits(b"bvquhlIxNRTCEFMDJOPLkstcf");

/// A set of letters, with a bit for each.
const fn bits(letters: &[u8]) -> u64 {
    let (mut bits, mut n) = (0, 0);
    while n < letters.len() {
        bits |= bit(letters[n]);
        n += 1;
    }
    bits
}

#[inline]
const fn bit(letter: u8) -> u64 {
    1 << (letter - b'A')
}

impl<'a> MetaRequest<'a> {
    /// The flags as they were sent, with blanks.
    #[inline]
    pub fn flags(&self) -> &'a [u8] {
        self.flags.rest()
    }

    /// Parse the flags.
    pub fn options(&self) -> Result<MetaOptions<'a>, MetaError> {
        match self.verb {
            MetaVerb::Debug => self.debug_options(),
            _ => self.parse().map_err(|error| self.first_of_all(error)),
        }
    }

    /// `me` reads no flag but `b`, and that only with another one behind it, as memcached does.
    fn debug_options(&self) -> Result<MetaOptions<'a>, MetaError> {
        if self.is_malformed() {
            return Err(MetaError::NoLetter);
        }
        let mut flags = self.flags;
        let base64 = flags.next() == Some(b"b") && flags.next().is_some();
        Ok(MetaOptions { base64, ..MetaOptions::default() })
    }

    /// Whether a flag begins neither as a letter nor as a digit (some marks count as letters).
    fn is_malformed(&self) -> bool {
        let mut flags = self.flags;
        flags.any(|flag| !matches!(flag[0], b'A'..=b'z' | b'0'..=b'9'))
    }

    /// How many flags the line may have. The verb, the key and for `ms` the length precede them.
    fn flags_max(&self) -> usize {
        WORDS_MAX - if self.verb == MetaVerb::Set { 3 } else { 2 }
    }

    /// Of all errors of the line, of which this is one, the one that memcached reports: a flag that is unknown or sent
    /// twice, else the last wrong number or key, else what is found later.
    #[cold]
    fn first_of_all(&self, found: MetaError) -> MetaError {
        if self.is_malformed() {
            return MetaError::NoLetter;
        }
        if self.flags.count() > self.flags_max() {
            return MetaError::TooMany;
        }
        let (mut seen, mut last, mut later) = (0, None, found);
        let (mut options, mut key) = (MetaOptions::default(), [0; KEY_BYTES_MAX]);
        for flag in self.flags {
            let letter = flag[0];
            if letter.is_ascii_digit() {
                return MetaError::Unknown;
            }
            if seen & bit(letter) != 0 {
                return MetaError::Duplicate;
            }
            seen |= bit(letter);
            let applied = match letter {
                b'b' => decode_key(self.key, &mut key).map(|_| ()),
                _ => self.apply(letter, flag, &mut options),
            };
            last = match applied {
                Err(MetaError::Unknown) => return MetaError::Unknown,
                Err(MetaError::BadClientFlags) => last.or(Some(MetaError::BadClientFlags)),
                Err(MetaError::LongOpaque) | Ok(()) => last,
                // A wrong mode is found before the opaque token is looked at.
                Err(mode @ (MetaError::BadStoreMode | MetaError::BadArithmeticMode)) => {
                    later = mode;
                    last
                }
                Err(error) => Some(error),
            };
        }
        last.unwrap_or(later)
    }

    fn parse(&self) -> Result<MetaOptions<'a>, MetaError> {
        let mut options = MetaOptions::default();
        let mut seen = 0_u64;
        for (index, flag) in self.flags.enumerate() {
            if index >= self.flags_max() {
                return Err(MetaError::TooMany);
            }
            let letter = flag[0];
            if !letter.is_ascii_alphabetic() {
                return Err(MetaError::NoLetter);
            }
            if seen & bit(letter) != 0 {
                return Err(MetaError::Duplicate);
            }
            seen |= bit(letter);
            options.letters.push(letter);
            self.apply(letter, flag, &mut options)?;
        }
        Ok(options)
    }

    #[inline]
    fn apply(
        &self,
        letter: u8,
        flag: &'a [u8],
        options: &mut MetaOptions<'a>,
    ) -> Result<(), MetaError> {
        let token = &flag[1..];
        match letter {
            b'v' => options.value = true,
            b'q' => options.quiet = true,
            b'b' => options.base64 = true,
            b'u' => options.no_update = true,
            b'h' | b'l' => options.access_info = true,
            b'I' => options.invalidate = true,
            b'x' => options.remove_value = true,
            b'N' => options.vivify = Some(time(token)?),
            b'R' => options.recache = Some(time(token)?),
            b'T' => options.exptime = Some(time(token)?),
            b'C' => options.expected_cas = Some(unsigned(token).ok_or(MetaError::BadToken)?),
            b'E' => options.new_cas = Some(unsigned(token).ok_or(MetaError::BadToken)?),
            b'F' => options.client_flags = client_flags(token)?,
            b'D' => options.delta = Some(unsigned(token).ok_or(MetaError::BadDelta)?),
            b'J' => options.initial = unsigned(token).ok_or(MetaError::BadInitial)?,
            b'M' => options.mode = self.mode(token)?,
            b'O' if token.len() >= OPAQUE_BYTES_MAX => return Err(MetaError::LongOpaque),
            b'O' => options.opaque = flag,
            known if KNOWN & bit(known) != 0 => {}
            _ => return Err(MetaError::Unknown),
        }
        Ok(())
    }

    /// Parse a mode. Only its first letter counts.
    fn mode(&self, token: &[u8]) -> Result<MetaMode, MetaError> {
        Ok(match (self.verb, token.first()) {
            (MetaVerb::Set, Some(b'S')) => MetaMode::Plain,
            (MetaVerb::Set, Some(b'E')) => MetaMode::Add,
            (MetaVerb::Set, Some(b'A')) => MetaMode::Append,
            (MetaVerb::Set, Some(b'P')) => MetaMode::Prepend,
            (MetaVerb::Set, Some(b'R')) => MetaMode::Replace,
            (MetaVerb::Set, _) => return Err(MetaError::BadStoreMode),
            (MetaVerb::Arithmetic, Some(b'I' | b'+')) => MetaMode::Plain,
            (MetaVerb::Arithmetic, Some(b'D' | b'-')) => MetaMode::Decrement,
            (MetaVerb::Arithmetic, _) => return Err(MetaError::BadArithmeticMode),
            _ => MetaMode::Plain,
        })
    }
}

fn client_flags(token: &[u8]) -> Result<u32, MetaError> {
    let flags = unsigned(token).and_then(|flags| u32::try_from(flags).ok());
    flags.ok_or(MetaError::BadClientFlags)
}

fn time(token: &[u8]) -> Result<i64, MetaError> {
    exptime(token).ok_or(MetaError::BadToken)
}

/// Decode a base64 key into `buffer`.
pub fn decode_key<'b>(
    key: &[u8],
    buffer: &'b mut [u8; KEY_BYTES_MAX],
) -> Result<&'b [u8], MetaError> {
    let length = BASE64.decode_slice(key, buffer).map_err(|_| MetaError::BadKey)?;
    if length == 0 { Err(MetaError::BadKey) } else { Ok(&buffer[..length]) }
}

/// Append a key in base64.
pub fn encode_key(key: &[u8], out: &mut Vec<u8>) {
    const BYTES_MAX: usize = KEY_BYTES_MAX.div_ceil(3) * 4;
    let mut buffer = [0; BYTES_MAX];
    let length = BASE64.encode_slice(key, &mut buffer).expect("a key's length is bounded");
    out.extend_from_slice(&buffer[..length]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_survive_base64(key in proptest::collection::vec(any::<u8>(), 1..187)) {
            let (mut encoded, mut buffer) = (Vec::new(), [0; KEY_BYTES_MAX]);
            encode_key(&key, &mut encoded);
            prop_assert!(encoded.len() <= KEY_BYTES_MAX);
            prop_assert_eq!(decode_key(&encoded, &mut buffer), Ok(&key[..]));
        }
    }
}
