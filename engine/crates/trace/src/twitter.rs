//! Twitter's public cache traces (twitter/cache-trace), without a header: `timestamp,anonymized key,key
//! size,value size,client id,operation,TTL`.

use crate::event::{TraceEvent, action, exptime, length, number, seconds};

/// Parse a line. A key may contain commas, so the fields are counted from both ends.
pub(crate) fn event(line: &str) -> Result<TraceEvent, String> {
    let refuse = || "it needs timestamp,key,key size,value size,client id,operation,TTL".to_owned();
    let (at, rest) = line.split_once(',').ok_or_else(refuse)?;
    let fields: Vec<&str> = rest.rsplitn(6, ',').collect();
    let [ttl, operation, _client, value_size, key_size, key] = fields[..] else {
        return Err(refuse());
    };
    let bytes = length(value_size)?;
    Ok(TraceEvent {
        at_ns: Some(seconds(at)?),
        number: 0,
        key: key.to_owned(),
        key_bytes: Some(number(key_size, "key size", u64::from(u32::MAX))? as u32),
        action: action(operation)?,
        // A miss has a size of 0 bytes.
        length: (bytes > 0).then_some(bytes),
        exptime_s: exptime(ttl)?,
        count: 1,
        client: None,
        succeeded: None,
        joined: false,
    })
}
