//! memcached's checks after it has read all options, in its order.

use cachemark_server::Protocol;

use crate::memcached::configuration::{Configuration, Ending, SYSTEM, USAGE, failed};
use crate::memcached::endpoints::{fault, has_protocol, tls_word};

const ITEM_BYTES_MIN: i64 = 1024;
const ITEM_BYTES_MAX: i64 = 1 << 30;
const PAGE_BYTES: i64 = 1 << 20;

/// Complete the configuration, or say why it is refused.
pub fn completed(mut from: Configuration) -> Result<Configuration, Ending> {
    check_item_size(&mut from)?;
    check_slab_sizes(&mut from)?;
    if from.tuning.hot_percent + from.tuning.warm_percent > 80 {
        return usage("hot_lru_pct + warm_lru_pct cannot be more than 80% combined");
    }
    if from.tuning.temporary_lru && !from.tuning.lru_maintainer {
        return usage("temporary_ttl requires lru_maintainer to be enabled");
    }
    check_login(&mut from)?;
    if from.udp_port_given && from.udp_port != 0 && !from.port_given {
        from.port = from.udp_port;
    }
    if from.port > 65535 {
        return usage(&format!("ERROR: Invalid port number {}.", from.port));
    }
    check_interfaces(&from)?;
    if from.tls {
        if from.port == 0 {
            return usage("ERROR: You cannot enable SSL without a TCP port.");
        }
        if from.tls_certificate.is_none() || from.tls_key.is_none() {
            return usage("ERROR: -Z needs -o ssl_chain_cert=<file>,ssl_key=<file>.");
        }
    }
    Ok(from)
}

fn usage<T>(message: &str) -> Result<T, Ending> {
    Err(failed(USAGE, message))
}

fn check_interfaces(from: &Configuration) -> Result<(), Ending> {
    let interfaces = from.interfaces.as_deref().unwrap_or_default();
    let mut words = interfaces.iter().filter_map(|interface| tls_word(interface));
    if let (false, Some(word)) = (from.tls, words.next()) {
        let told = format!("'{word}' option is valid only when SSL is enabled");
        return Err(failed(SYSTEM, told));
    }
    if interfaces.iter().any(|interface| has_protocol(interface)) {
        return usage("-l proto[...]: here all listeners speak the protocol of -B");
    }
    if let Some(fault) = interfaces.iter().find_map(|interface| fault(interface)) {
        return Err(failed(SYSTEM, fault));
    }
    for (name, port) in [("TCP", from.port), ("UDP", from.udp_port)] {
        if port < -1 {
            return Err(failed(SYSTEM, format!("failed to listen on {name} port {port}")));
        }
    }
    Ok(())
}

fn check_item_size(from: &mut Configuration) -> Result<(), Ending> {
    if from.item_bytes < ITEM_BYTES_MIN {
        return usage("Item max size cannot be less than 1024 bytes.");
    }
    if from.item_bytes > from.memory_mebibytes.saturating_mul(1 << 20) / 2 {
        return usage("Cannot set item size limit higher than 1/2 of memory max.");
    }
    if from.item_bytes > ITEM_BYTES_MAX {
        return usage("Cannot set item size limit higher than a gigabyte.");
    }
    if from.item_bytes > PAGE_BYTES && !from.slab_chunk_given {
        from.tuning.slab_chunk_max = (PAGE_BYTES / 2) as u32;
    }
    let (item, chunk) = (from.item_bytes, i64::from(from.tuning.slab_chunk_max));
    if chunk > item {
        return usage(&format!(
            "slab_chunk_max (bytes: {chunk}) cannot be larger than -I (item_size_max {item})"
        ));
    }
    if item % chunk != 0 {
        return usage(&format!(
            "-I (item_size_max: {item}) must be evenly divisible by slab_chunk_max (bytes: {chunk})"
        ));
    }
    if PAGE_BYTES % chunk != 0 {
        return usage(&format!(
            "slab_chunk_max (bytes: {chunk}) must divide evenly into {PAGE_BYTES} (slab_page_size)"
        ));
    }
    Ok(())
}

const SLAB_CLASSES_MAX: usize = 63;
const CHUNK_ALIGN_BYTES: u32 = 8;

/// The sizes must be in order and apart from each other, as memcached's slab classes are.
fn check_slab_sizes(from: &mut Configuration) -> Result<(), Ending> {
    let Some(sizes) = &from.slab_sizes else { return Ok(()) };
    let mut last = 0;
    for (number, text) in sizes.split('-').filter(|text| !text.is_empty()).enumerate() {
        let size: u32 = text.parse().unwrap_or(0);
        if !(from.tuning.chunk_size..=from.tuning.slab_chunk_max).contains(&size) {
            return usage(&format!("slab size {size} is out of valid range"));
        }
        if last >= size {
            return usage(&format!(
                "slab size {size} cannot be lower than or equal to a previous class size"
            ));
        }
        if size <= last + CHUNK_ALIGN_BYTES {
            return usage(&format!(
                "slab size {size} must be at least {CHUNK_ALIGN_BYTES} bytes larger than previous class"
            ));
        }
        if number + 1 >= SLAB_CLASSES_MAX {
            return usage("too many slab classes specified");
        }
        from.tuning.slab_sizes.push(size);
        last = size;
    }
    if last == 0 {
        usage("slab_sizes needs sizes with - between, such as 100-200-300")
    } else {
        Ok(())
    }
}

/// With a login there is only one protocol, unless another is asked for, which is refused.
fn check_login(from: &mut Configuration) -> Result<(), Ending> {
    if from.sasl {
        if *from.protocol.get_or_insert(Protocol::Binary) != Protocol::Binary {
            return usage("ERROR: You cannot allow the ASCII protocol while using SASL.");
        }
        if from.udp_port != 0 {
            return usage("ERROR: Cannot enable UDP while using binary SASL authentication.");
        }
    }
    if from.auth_file.is_some() {
        if *from.protocol.get_or_insert(Protocol::Text) != Protocol::Text {
            return usage(
                "ERROR: You cannot allow the BINARY protocol while using ascii authentication tokens.",
            );
        }
        if from.udp_port != 0 {
            return usage("Cannot use UDP with ascii authentication enabled (-U 0 to disable)");
        }
    }
    Ok(())
}
