//! Where a client's requests are written. Values are passed separately, so that an implementation can send them
//! without a copy.

/// The target of encoded requests. Values live as long as `'v`.
pub trait Sink<'v> {
    /// The buffer for everything but values.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Append a value behind the bytes so far.
    fn value(&mut self, value: &'v [u8]);
}

/// A plain buffer copies the values.
impl<'v> Sink<'v> for Vec<u8> {
    #[inline]
    fn bytes(&mut self) -> &mut Vec<u8> {
        self
    }

    #[inline]
    fn value(&mut self, value: &'v [u8]) {
        self.extend_from_slice(value);
    }
}
