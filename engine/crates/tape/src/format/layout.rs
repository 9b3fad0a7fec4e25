//! The layout of a tape, version 2: header, sections and records. docs/tape.md describes it.

pub const MAGIC: [u8; 8] = *b"CMTAPE\0\0";
pub const VERSION: u32 = 2;
pub const HEADER_BYTES: usize = 184;
pub const OP_BYTES: usize = 16;
pub const FLAG_NOREPLY: u8 = 1;
pub const FLAG_UNVERIFIED: u64 = 1;
/// A record's generation is above its flag for noreply.
pub const GENERATION_SHIFT: u8 = 1;
/// Of each key, at each length.
pub const GENERATIONS: u8 = 4;
/// The header's flags from this bit on: the number of lanes that the generations are for; 0 if there are none.
pub const GENERATION_LANES_SHIFT: u32 = 32;
pub const MAX_KEY_BYTES: usize = 250;
/// The initial value of a counter.
pub const COUNTER_START: &[u8; 10] = b"1000000000";

/// The fields of the header, in the order of the file, from offset 16 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub file_bytes: u64,
    pub seed: u64,
    pub key_count: u64,
    pub prefill_count: u64,
    pub op_count: u64,
    pub run_count: u64,
    pub pool_bytes: u64,
    pub period_ns: u64,
    pub key_offsets_at: u64,
    pub key_bytes_at: u64,
    pub key_bytes: u64,
    pub lengths_at: u64,
    pub pool_at: u64,
    pub ops_at: u64,
    pub runs_at: u64,
    pub times_at: u64,
    pub exptime_s: u64,
    pub flags: u64,
    pub group: u64,
    pub counter_count: u64,
    pub thinks_at: u64,
}

impl Header {
    /// The number of lanes that the generations are for; 0 if there are none.
    #[inline]
    pub fn generation_lanes(&self) -> u64 {
        self.flags >> GENERATION_LANES_SHIFT
    }

    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        for (slot, field) in bytes[16..].chunks_exact_mut(8).zip(self.fields()) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Header {
        let mut fields = bytes[16..]
            .chunks_exact(8)
            .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        let mut next = || fields.next().expect("twenty-one fields");
        Header {
            file_bytes: next(),
            seed: next(),
            key_count: next(),
            prefill_count: next(),
            op_count: next(),
            run_count: next(),
            pool_bytes: next(),
            period_ns: next(),
            key_offsets_at: next(),
            key_bytes_at: next(),
            key_bytes: next(),
            lengths_at: next(),
            pool_at: next(),
            ops_at: next(),
            runs_at: next(),
            times_at: next(),
            exptime_s: next(),
            flags: next(),
            group: next(),
            counter_count: next(),
            thinks_at: next(),
        }
    }

    fn fields(self) -> [u64; 21] {
        [
            self.file_bytes,
            self.seed,
            self.key_count,
            self.prefill_count,
            self.op_count,
            self.run_count,
            self.pool_bytes,
            self.period_ns,
            self.key_offsets_at,
            self.key_bytes_at,
            self.key_bytes,
            self.lengths_at,
            self.pool_at,
            self.ops_at,
            self.runs_at,
            self.times_at,
            self.exptime_s,
            self.flags,
            self.group,
            self.counter_count,
            self.thinks_at,
        ]
    }
}

/// Where the value of a key starts in the pool; `length` ≤ `pool_bytes`.
///
/// The products are below 2⁵³, so the formula is exact in languages whose only number type is a double.
#[inline]
pub fn value_offset(key: u32, length: u32, generation: u8, pool_bytes: u64) -> u64 {
    let place = u64::from(key) * 786_433 + u64::from(length) * 97 + u64::from(generation) * 262_147;
    place % (pool_bytes - u64::from(length) + 1)
}
