//! Packets of pcap and pcapng files, one after the other: either order of bytes, times in µs, ns or else.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

use pcap_parser::nom::Offset;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, InterfaceStatisticsBlock, OptionCode, PcapHeader,
    parse_block_be, parse_block_le, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_frame_modified, parse_pcap_header,
};

use crate::lengths::{
    Broken, MOST_BLOCK_BYTES, PCAPNG_MAGIC, check_captured, ends_before, whole_block,
};
use crate::old_packet::OldPacket;

/// The kind of blocks that early writers used for packets.
const OLD_PACKET: u32 = 2;
const READ_BYTES: usize = 1 << 18;
/// Options of interface statistics: packets that the interface and the system dropped.
const DROPS: [OptionCode; 2] = [OptionCode(5), OptionCode(7)];
const NS: u64 = 1_000_000_000;
/// So that sums of times do not overflow.
const MOST_NS: u64 = u64::MAX / 4;

/// A packet, perhaps with fewer bytes than it had.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet<'a> {
    pub at_ns: u64,
    /// The number of its kind of link, as in tcpdump.org/linktypes.
    pub link: u16,
    pub bytes: &'a [u8],
    /// How many bytes it had.
    pub length: usize,
}

enum Kind {
    Pcap(PcapHeader),
    Pcapng { big_endian: bool, section: u32, interfaces: Vec<Interface> },
}

struct Interface {
    link: u16,
    /// Units of time in a second.
    resolution: u64,
    offset_s: i64,
    snaplen: u32,
}

/// The kind of a block.
enum Found {
    Packet { at_ns: u64, link: u16, bytes: Range<usize>, length: usize },
    Other,
}

/// A file that is read.
pub(crate) struct CaptureFile<R> {
    from: R,
    buffer: Vec<u8>,
    /// Where the next block begins.
    at: usize,
    ended: bool,
    kind: Kind,
    packets: u64,
    last_ns: u64,
    dropped: BTreeMap<(u32, u32), u64>,
    cut_off: bool,
}

impl<R: Read> CaptureFile<R> {
    /// Begin to read. An error says that it is no capture.
    pub(crate) fn open(from: R) -> Result<CaptureFile<R>, String> {
        let kind = Kind::Pcapng { big_endian: false, section: 0, interfaces: Vec::new() };
        let mut file = CaptureFile {
            from,
            buffer: Vec::new(),
            at: 0,
            ended: false,
            kind,
            packets: 0,
            last_ns: 0,
            dropped: BTreeMap::new(),
            cut_off: false,
        };
        file.need(4)?;
        if file.buffer.starts_with(&PCAPNG_MAGIC) {
            return Ok(file);
        }
        file.need(24)?;
        match parse_pcap_header(&file.buffer) {
            Ok((rest, header)) => {
                file.at = file.buffer.len() - rest.len();
                file.kind = Kind::Pcap(header);
                Ok(file)
            }
            Err(_) if file.buffer.is_empty() => Err("it is empty".to_owned()),
            Err(_) => {
                Err("it is no capture of packets: pcap and pcapng are read, as `tcpdump -w` \
                           writes them"
                    .to_owned())
            }
        }
    }

    fn need(&mut self, bytes: usize) -> Result<(), String> {
        while self.buffer.len() < bytes && !self.ended {
            self.read_more().map_err(|error| format!("it cannot be read: {error}"))?;
        }
        Ok(())
    }

    fn read_more(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let read = self.from.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(read) => self.ended = read == 0,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The next packet; `None` after the last one. An error names the packet.
    pub(crate) fn next(&mut self) -> Result<Option<Packet<'_>>, String> {
        loop {
            match self.block() {
                Ok(Found::Other) => {}
                Ok(Found::Packet { at_ns, link, bytes, length }) => {
                    self.packets += 1;
                    self.last_ns = at_ns;
                    let bytes = &self.buffer[bytes];
                    return Ok(Some(Packet { at_ns, link, bytes, length }));
                }
                Err(Broken::Incomplete) if self.ended => {
                    self.cut_off = self.at < self.buffer.len();
                    return Ok(None);
                }
                Err(Broken::Incomplete) if self.buffer.len() - self.at <= MOST_BLOCK_BYTES => {
                    self.read_more()
                        .map_err(|error| self.place(&format!("it cannot be read: {error}")))?;
                }
                Err(Broken::Incomplete) => return Err(self.place("it is damaged: too large")),
                Err(Broken::Damaged(what)) => {
                    return Err(self.place(&format!("it is damaged: {what}")));
                }
            }
        }
    }

    fn place(&self, error: &str) -> String {
        format!("packet {}: {error}", self.packets + 1)
    }

    /// How many packets were read.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// How many packets the capture itself says it dropped. Only pcapng can say it.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// Whether the file ended within a packet.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Parse the next block, and go behind it.
    fn block(&mut self) -> Result<Found, Broken> {
        let bytes = &self.buffer[self.at..];
        if bytes.is_empty() {
            return Err(Broken::Incomplete);
        }
        let (rest, found) = match &mut self.kind {
            Kind::Pcap(header) => {
                check_captured(header, bytes)?;
                pcap_packet(header, bytes)?
            }
            Kind::Pcapng { big_endian, section, interfaces } => {
                let whole = whole_block(*big_endian, bytes);
                if self.ended
                    && matches!(whole, Err(Broken::Incomplete))
                    && ends_before(*big_endian, bytes)
                {
                    return Err(Broken::Damaged("it ends before its length says so"));
                }
                let whole = whole?;
                let parse = if *big_endian { parse_block_be } else { parse_block_le };
                // What is missing within a whole block does not follow.
                let (_, block) =
                    parse(whole).map_err(|_| Broken::Damaged("no block of a capture"))?;
                let found = match block {
                    Block::SectionHeader(header) => {
                        *big_endian = header.big_endian();
                        *section += 1;
                        interfaces.clear();
                        Found::Other
                    }
                    Block::InterfaceDescription(description) => {
                        interfaces.push(interface(&description)?);
                        Found::Other
                    }
                    Block::InterfaceStatistics(statistics) => {
                        let dropped = drops(&statistics, *big_endian);
                        self.dropped.insert((*section, statistics.if_id), dropped);
                        Found::Other
                    }
                    Block::EnhancedPacket(packet) => {
                        let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        let interface = interfaces.get(packet.if_id as usize);
                        let interface = interface.ok_or(Broken::Damaged("no such interface"))?;
                        let data = packet.packet_data();
                        Found::Packet {
                            at_ns: interface.ns(units)?,
                            link: interface.link,
                            bytes: range(bytes, data),
                            length: (packet.origlen as usize).max(data.len()),
                        }
                    }
                    Block::SimplePacket(packet) => {
                        let interface = interfaces.first();
                        let interface = interface.ok_or(Broken::Damaged("no interface"))?;
                        let length = packet.origlen as usize;
                        let most = match interface.snaplen {
                            0 => length,
                            snaplen => length.min(snaplen as usize),
                        };
                        let data = &packet.data[..packet.data.len().min(most)];
                        let at_ns = self.last_ns;
                        let bytes = range(bytes, data);
                        Found::Packet { at_ns, link: interface.link, bytes, length }
                    }
                    Block::Unknown(block) if block.block_type == OLD_PACKET => {
                        let packet = OldPacket::of(block.data, *big_endian);
                        let packet = packet.ok_or(Broken::Damaged("no block of a packet"))?;
                        let interface = interfaces.get(packet.interface);
                        let interface = interface.ok_or(Broken::Damaged("no such interface"))?;
                        Found::Packet {
                            at_ns: interface.ns(packet.units)?,
                            link: interface.link,
                            bytes: range(bytes, packet.data),
                            length: packet.length.max(packet.data.len()),
                        }
                    }
                    _ => Found::Other,
                };
                (bytes.len() - whole.len(), found)
            }
        };
        let base = self.at;
        self.at = self.buffer.len() - rest;
        Ok(match found {
            Found::Packet { at_ns, link, bytes, length } => {
                let bytes = base + bytes.start..base + bytes.end;
                Found::Packet { at_ns, link, bytes, length }
            }
            Found::Other => Found::Other,
        })
    }
}

fn range(all: &[u8], part: &[u8]) -> Range<usize> {
    let begin = all.offset(part);
    begin..begin + part.len()
}

/// A packet of a pcap file, and how many bytes are behind it.
fn pcap_packet(header: &PcapHeader, bytes: &[u8]) -> Result<(usize, Found), Broken> {
    let parse = match header {
        header if header.is_modified_format() => parse_pcap_frame_modified,
        header if header.is_bigendian() => parse_pcap_frame_be,
        _ => parse_pcap_frame,
    };
    let (rest, packet) = parse(bytes)?;
    let unit_ns = if header.is_nanosecond_precision() { 1 } else { 1000 };
    let part_ns = u64::from(packet.ts_usec) * unit_ns;
    if part_ns >= NS {
        return Err(Broken::Damaged("its fraction of a second is a second or more"));
    }
    let found = Found::Packet {
        at_ns: u64::from(packet.ts_sec) * NS + part_ns,
        // The other bits tell whether frames end in checksums.
        link: header.network.0 as u16,
        bytes: range(bytes, packet.data),
        length: (packet.origlen as usize).max(packet.data.len()),
    };
    Ok((rest.len(), found))
}

fn interface(description: &InterfaceDescriptionBlock<'_>) -> Result<Interface, Broken> {
    // The highest bit tells that it is a power of 2, not of 10.
    let (base, exponent) =
        (if description.if_tsresol < 0x80 { 10_u64 } else { 2 }, description.if_tsresol & 0x7f);
    let resolution = base.checked_pow(exponent.into());
    Ok(Interface {
        link: description.linktype.0 as u16,
        resolution: resolution.ok_or(Broken::Damaged("no such resolution of times"))?,
        offset_s: description.ts_offset(),
        snaplen: description.snaplen,
    })
}

impl Interface {
    fn ns(&self, units: u64) -> Result<u64, Broken> {
        let ns = i128::from(units) * i128::from(NS) / i128::from(self.resolution)
            + i128::from(self.offset_s) * i128::from(NS);
        let ns = u64::try_from(ns).ok().filter(|ns| *ns <= MOST_NS);
        ns.ok_or(Broken::Damaged("its time is centuries away"))
    }
}

fn drops(statistics: &InterfaceStatisticsBlock<'_>, big_endian: bool) -> u64 {
    let number = |bytes: [u8; 8]| {
        if big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
    };
    let options = statistics.options.iter().filter(|option| DROPS.contains(&option.code));
    let counts = options.filter_map(|option| option.as_bytes().ok()?.try_into().ok().map(number));
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A block of a pcapng file in little-endian order.
    pub(crate) fn block(kind: u32, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, content, &length].concat()
    }

    #[test]
    fn old_packet_blocks_and_binary_parts_of_seconds_are_read() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let section: Vec<u8> = words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
        // Ethernet, any length, and the option that a unit is 2 to the power of -20 s.
        let interface: Vec<u8> = words(&[1, 0, 9 | 1 << 16, 0x80 | 20, 0]);
        let packet: Vec<u8> = words(&[0, 0, 3 << 19, 4, 99, 0x6463_6261]);
        let file = [
            block(0x0a0d_0d0a, &section),
            block(1, &interface),
            block(OLD_PACKET, &packet),
            block(OLD_PACKET, &packet[..8]),
        ];
        let bytes = file.concat();
        let mut read = CaptureFile::open(&bytes[..]).expect("a capture");
        let packet = read.next().expect("a packet").expect("one");
        assert_eq!((packet.at_ns, packet.bytes, packet.length), (3 * NS / 2, &b"abcd"[..], 99));
        assert!(read.next().is_err_and(|error| error.starts_with("packet 2: it is damaged")));
    }
}
