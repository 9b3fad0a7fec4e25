//! From a packet to the bytes of a TCP segment or a datagram.

use std::net::{IpAddr, SocketAddr};

use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};

use crate::capture_file::Packet;

/// The content of a packet from one address to another. Of its `length` bytes, the first were captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub transport: Transport,
    pub bytes: &'a [u8],
    pub length: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    Tcp { sequence: u32, acknowledged: Option<u32>, begins: bool, ends: bool },
    Udp,
}

/// Why a packet carries nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSegment {
    OtherProtocol,
    /// A part of an IP packet.
    Fragment,
    /// The capture cut its headers.
    CutHeaders,
    UnknownLink(u16),
}

/// The bytes that a packet carries. Checksums are ignored: packets that leave get theirs later.
pub(crate) fn segment<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, NoSegment> {
    let (sliced, behind) = sliced(packet)?;
    let ip_length = packet.length.saturating_sub(packet.bytes.len() - behind.len());
    let net = sliced.net.as_ref().ok_or(match sliced.stop_err {
        Some(_) => NoSegment::CutHeaders,
        None => NoSegment::OtherProtocol,
    })?;
    // The header's length is below the frame's if the frame was padded; packets above 64 KiB have 0.
    let (from, to, told) = match net {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            (addresses.0, addresses.1, usize::from(header.total_len()))
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let addresses = (header.source_addr().into(), header.destination_addr().into());
            let told = match header.payload_length() {
                0 => 0,
                bytes => 40 + usize::from(bytes),
            };
            (addresses.0, addresses.1, told)
        }
        LaxNetSlice::Arp(_) => return Err(NoSegment::OtherProtocol),
    };
    let payload = sliced.ip_payload().ok_or(NoSegment::OtherProtocol)?;
    if payload.fragmented {
        return Err(NoSegment::Fragment);
    }
    let before = payload.payload.as_ptr() as usize - ip_start(behind, net);
    let told = if told == 0 { ip_length } else { told };
    let length = told.saturating_sub(before);
    carried(&sliced, (from, to), length)
}

/// Where the IP header is in memory.
fn ip_start(behind: &[u8], net: &LaxNetSlice<'_>) -> usize {
    match net {
        LaxNetSlice::Ipv4(ip) => ip.header().slice().as_ptr() as usize,
        LaxNetSlice::Ipv6(ip) => ip.header().slice().as_ptr() as usize,
        LaxNetSlice::Arp(_) => behind.as_ptr() as usize,
    }
}

fn carried<'a>(
    sliced: &LaxSlicedPacket<'a>,
    (from, to): (IpAddr, IpAddr),
    length: usize,
) -> Result<Segment<'a>, NoSegment> {
    let (ports, transport, bytes, header) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => {
            let transport = Transport::Tcp {
                sequence: tcp.sequence_number(),
                acknowledged: tcp.ack().then(|| tcp.acknowledgment_number()),
                begins: tcp.syn(),
                ends: tcp.rst() || tcp.fin(),
            };
            let ports = (tcp.source_port(), tcp.destination_port());
            (ports, transport, tcp.payload(), tcp.header_slice().len())
        }
        Some(TransportSlice::Udp(udp)) => {
            let ports = (udp.source_port(), udp.destination_port());
            (ports, Transport::Udp, udp.payload(), 8)
        }
        None if sliced.stop_err.is_some() => return Err(NoSegment::CutHeaders),
        _ => return Err(NoSegment::OtherProtocol),
    };
    let length = length.saturating_sub(header);
    Ok(Segment {
        from: SocketAddr::new(from, ports.0),
        to: SocketAddr::new(to, ports.1),
        transport,
        bytes: &bytes[..bytes.len().min(length)],
        length,
    })
}

/// The layers of a packet, and the bytes behind its link's header.
fn sliced<'a>(packet: &Packet<'a>) -> Result<(LaxSlicedPacket<'a>, &'a [u8]), NoSegment> {
    let bytes = packet.bytes;
    let word = |at: usize| match bytes.get(at..at + 2) {
        Some(word) => Ok(EtherType(u16::from_be_bytes([word[0], word[1]]))),
        None => Err(NoSegment::CutHeaders),
    };
    let behind = |header: usize| bytes.get(header..).ok_or(NoSegment::CutHeaders);
    let (ether_type, behind) = match packet.link {
        // Ethernet
        1 => (word(12)?, behind(14)?),
        // The form of `tcpdump -i any`: cooked, version 1 and 2
        113 => (word(14)?, behind(16)?),
        276 => (word(0)?, behind(20)?),
        // BSD's loopback: the family, in either order of bytes
        0 | 108 => return from_ip(behind(4)?),
        // IP without a link; 12 and 14 are how some systems write 101
        12 | 14 | 101 | 228 | 229 => return from_ip(bytes),
        other => return Err(NoSegment::UnknownLink(other)),
    };
    Ok((LaxSlicedPacket::from_ether_type(ether_type, behind), behind))
}

fn from_ip(bytes: &[u8]) -> Result<(LaxSlicedPacket<'_>, &[u8]), NoSegment> {
    match LaxSlicedPacket::from_ip(bytes) {
        Ok(sliced) => Ok((sliced, bytes)),
        Err(_) if bytes.first().is_some_and(|first| matches!(first >> 4, 4 | 6)) => {
            Err(NoSegment::CutHeaders)
        }
        Err(_) => Err(NoSegment::OtherProtocol),
    }
}
