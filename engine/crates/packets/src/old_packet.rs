//! Packets in blocks of pcapng that early writers used.

/// The content of a block of the old kind.
pub(crate) struct OldPacket<'a> {
    pub interface: usize,
    pub units: u64,
    pub data: &'a [u8],
    pub length: usize,
}

impl<'a> OldPacket<'a> {
    /// `None`: it is too short.
    pub fn of(block: &'a [u8], big_endian: bool) -> Option<OldPacket<'a>> {
        let number = |at: usize, bytes: usize| {
            let number = block.get(at..at + bytes)?.iter();
            let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
            Some(if big_endian { number.fold(0, add) } else { number.rev().fold(0, add) })
        };
        let captured = usize::try_from(number(12, 4)?).ok()?;
        Some(OldPacket {
            interface: number(0, 2)? as usize,
            units: number(4, 4)? << 32 | number(8, 4)?,
            data: block.get(20..)?.get(..captured)?,
            length: number(16, 4)? as usize,
        })
    }
}
