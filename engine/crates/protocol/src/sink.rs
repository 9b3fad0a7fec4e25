//! Where requests are written to. A value is told apart from the bytes around it, so that a writer
//! that can send it from where it lies need not copy it.

/// What a request is appended to; values live as long as `'v`.
pub trait Sink<'v> {
    /// Where everything but values goes.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Append a value behind what was appended so far.
    fn value(&mut self, value: &'v [u8]);
}

/// A buffer copies everything.
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
