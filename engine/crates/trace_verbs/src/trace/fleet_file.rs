//! The file that describes a fleet: `fleet.toml`.

use std::path::Path;

use cachemark_command::units;
use cachemark_fleet::{MOST_SERVERS, Placement, ServerKind};
use serde::Deserialize;

/// The file's settings, in plain units.
pub(super) struct FleetFile {
    pub placement: Placement,
    pub addresses: Vec<String>,
    pub hit_ratio: Option<f64>,
    pub use_at_most: f64,
    pub peak_rate: Option<f64>,
    pub growth: f64,
    pub connections: u64,
    pub gutter_servers: usize,
    pub gutter_ttl_s: u32,
    pub kinds: Vec<ServerKind>,
}

/// A number, or a text with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(f64),
    Text(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default = "ketama")]
    ring: String,
    #[serde(default)]
    addresses: Vec<String>,
    hit_ratio: Option<f64>,
    #[serde(default = "seven_tenths")]
    use_at_most: f64,
    peak_rate: Option<Amount>,
    #[serde(default = "one")]
    growth: f64,
    #[serde(default)]
    connections: u64,
    gutter: Option<Gutter>,
    #[serde(default)]
    server: Vec<Server>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gutter {
    servers: usize,
    ttl: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    name: String,
    memory: Amount,
    rate: Option<Amount>,
    threads: Option<u32>,
    service: Option<String>,
    #[serde(default = "one")]
    service_cv2: f64,
    network: Option<Amount>,
    connections: Option<u64>,
    price: Option<f64>,
    number: Option<usize>,
}

fn ketama() -> String {
    "ketama".to_owned()
}

fn seven_tenths() -> f64 {
    0.7
}

fn one() -> f64 {
    1.0
}

const MOST_BYTES: usize = 1 << 20;
const MOST_KINDS: usize = 100;

/// The text of a small file. An error names it.
pub(super) fn text_of(path: &Path) -> Result<String, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let bytes = std::fs::read(path).map_err(|error| place(error.to_string()))?;
    if bytes.len() > MOST_BYTES {
        return Err(place(format!("it has more than {MOST_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| place("it is not UTF-8".to_owned()))
}

/// Read the file. An error names it, and the line or the field.
pub(super) fn read(path: &Path) -> Result<FleetFile, String> {
    let place = |error: String| format!("{}: {error}", path.display());
    let text = text_of(path)?;
    let document: Document = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        place(format!("line {line}: {}", error.message().replace('\n', " ")))
    })?;
    checked(document).map_err(place)
}

fn checked(of: Document) -> Result<FleetFile, String> {
    let named = Placement::ALL.into_iter().find(|placement| placement.name() == of.ring);
    let placement = named.ok_or_else(|| {
        let names = Placement::ALL.map(Placement::name).join(", ");
        format!("ring = {:?}: one of {names}", of.ring)
    })?;
    let hit_ratio = of.hit_ratio.map(|ratio| part("hit_ratio", ratio)).transpose()?;
    let most = |what: &str, count: usize, most: usize| match count {
        count if count <= most => Ok(count),
        _ => Err(format!("{what} = {count}: at most {most}")),
    };
    most("addresses", of.addresses.len(), MOST_SERVERS)?;
    most("[[server]]", of.server.len(), MOST_KINDS)?;
    if of.server.is_empty() {
        return Err("no [[server]]: add one with its name and memory".to_owned());
    }
    let (gutter_servers, gutter_ttl_s) = match &of.gutter {
        None => (0, 0),
        Some(gutter) => {
            let ttl =
                units::duration(&gutter.ttl).map_err(|error| format!("gutter.ttl: {error}"))?;
            if gutter.servers == 0 || ttl.as_secs() == 0 {
                return Err("gutter: at least one server and a ttl of 1s are needed".to_owned());
            }
            (most("gutter.servers", gutter.servers, MOST_SERVERS)?, ttl.as_secs() as u32)
        }
    };
    Ok(FleetFile {
        placement,
        addresses: of.addresses,
        hit_ratio,
        use_at_most: part("use_at_most", of.use_at_most)?,
        peak_rate: of.peak_rate.as_ref().map(|rate| count("peak_rate", rate)).transpose()?,
        growth: positive("growth", of.growth)?,
        connections: of.connections,
        gutter_servers,
        gutter_ttl_s,
        kinds: of.server.iter().map(kind).collect::<Result<Vec<ServerKind>, String>>()?,
    })
}

fn kind(of: &Server) -> Result<ServerKind, String> {
    let place = |error: String| format!("server {:?}: {error}", of.name);
    let threads = of.threads.unwrap_or(4);
    if !(1..=1024).contains(&threads) {
        return Err(place(format!("threads = {threads}: 1 to 1024")));
    }
    let service_s = match &of.service {
        None => None,
        Some(text) => Some(units::duration(text).map_err(place)?.as_secs_f64()),
    };
    if service_s == Some(0.0) {
        return Err(place("service: a time above 0 is needed, such as 8us".to_owned()));
    }
    if !(of.service_cv2 >= 0.0 && of.service_cv2.is_finite()) {
        return Err(place("service_cv2: a number of at least 0".to_owned()));
    }
    let memory_bytes = match &of.memory {
        Amount::Text(text) => units::bytes(text).map_err(place)?,
        Amount::Number(_) => return Err(place("memory: with its unit, such as \"4g\"".to_owned())),
    };
    if !(1 << 20..=1 << 50).contains(&memory_bytes) {
        return Err(place("memory: at least 1m, at most 1 PiB".to_owned()));
    }
    if of.number.is_some_and(|number| !(1..=MOST_SERVERS).contains(&number)) {
        return Err(place(format!("number: 1 to {MOST_SERVERS} servers")));
    }
    // Bits, as networks are sold.
    let network = of.network.as_ref().map(|bits| count("network", bits)).transpose();
    let price = of.price.map(|price| positive("price", price)).transpose().map_err(place)?;
    Ok(ServerKind {
        name: of.name.clone(),
        memory_bytes,
        rate: of.rate.as_ref().map(|rate| count("rate", rate)).transpose().map_err(place)?,
        threads,
        service_s,
        service_cv2: of.service_cv2,
        network_bytes_per_s: network.map_err(place)?.map(|bits| bits / 8.0),
        connections: of.connections,
        price,
        number: of.number,
    })
}

fn positive(what: &str, number: f64) -> Result<f64, String> {
    let fits = number.is_finite() && number > 0.0 && number < 1e18;
    if fits { Ok(number) } else { Err(format!("{what} = {number}: a number above 0")) }
}

fn part(what: &str, number: f64) -> Result<f64, String> {
    if number > 0.0 && number <= 1.0 {
        return Ok(number);
    }
    Err(format!("{what} = {number}: above 0, at most 1"))
}

fn count(what: &str, amount: &Amount) -> Result<f64, String> {
    let number = match amount {
        Amount::Number(number) => *number,
        Amount::Text(text) => units::count(text).map_err(|error| format!("{what}: {error}"))?,
    };
    positive(what, number)
}
