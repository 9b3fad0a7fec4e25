//! The seeds of the fuzz targets: the cases of conformance/server, and for inputs of other kinds an example of
//! each form.

use std::io::Write;

use crate::cases::{self, expand};

/// Longer inputs slow the fuzzer down more than they help.
pub const BYTES_MAX: usize = 4096;

type Seeds = Vec<Vec<u8>>;

fn short(seeds: impl IntoIterator<Item = Vec<u8>>) -> Seeds {
    seeds.into_iter().filter(|seed| seed.len() <= BYTES_MAX).collect()
}

fn requests(table: &str) -> Seeds {
    short(cases::text(table).iter().map(|case| expand(&case.request)))
}

fn replies(table: &str) -> Seeds {
    let reply = |reply: &str| expand(&reply.replace("<version>", "1.6.45").replace("<cas>", "42"));
    short(cases::text(table).iter().map(|case| reply(&case.reply)))
}

pub fn text_requests() -> Seeds {
    requests("text.toml")
}

pub fn meta_requests() -> Seeds {
    requests("meta.toml")
}

pub fn binary_requests() -> Seeds {
    short(cases::binary().iter().map(cases::BinaryCase::request))
}

pub fn text_replies() -> Seeds {
    replies("text.toml")
}

pub fn meta_replies() -> Seeds {
    replies("meta.toml")
}

pub fn binary_replies() -> Seeds {
    short(cases::binary().iter().map(|case| case.expected("1.6.45")))
}

/// Logins that succeed and that fail.
pub fn logins() -> Seeds {
    let sasl = |mechanism: &[u8], message: &[u8]| {
        let login = cases::packet(0x80, 0x21, 0, 1, 0, [b"", mechanism, message]);
        let get = cases::packet(0x80, 0x00, 0, 2, 0, [b"", b"k", b""]);
        [login, get].concat()
    };
    let mut seeds = requests("auth.toml");
    seeds.extend([sasl(b"PLAIN", b"\0ann\0s3c"), sasl(b"PLAIN", b"\0ann\0no"), sasl(b"X", b"")]);
    seeds
}

pub fn datagrams() -> Seeds {
    let frame = |request: &Vec<u8>| [&[7, 9, 0, 0, 0, 1, 0, 0], &request[..]].concat();
    let all = [text_requests(), meta_requests(), binary_requests()].concat();
    all.iter().map(frame).collect()
}

/// Pairs of cases, each in pieces that alternate.
pub fn connections() -> Seeds {
    let all = [text_requests(), binary_requests(), meta_requests()].concat();
    let both = |pair: &[Vec<u8>]| {
        let mut pieces = Vec::new();
        for (number, request) in pair.iter().enumerate() {
            pieces.extend(request.chunks(9).enumerate().map(|(at, piece)| (at, number, piece)));
        }
        pieces.sort_by_key(|(at, _, _)| *at);
        let pieces: Vec<_> = pieces.into_iter().map(|(_, number, piece)| (number, piece)).collect();
        crate::connections::bytes(&pieces)
    };
    short(all.chunks(2).map(both))
}

/// Requests with their replies in pieces of both directions, with each fault of the proxy.
pub fn conversations() -> Seeds {
    let both = [
        (text_requests(), text_replies()),
        (meta_requests(), meta_replies()),
        (binary_requests(), binary_replies()),
    ];
    let pairs = both.iter().flat_map(|(requests, replies)| requests.iter().zip(replies));
    let seed = |(number, (request, reply)): (usize, (&Vec<u8>, &Vec<u8>))| {
        let pieces = request.chunks(200).map(|piece| (0, piece));
        let pieces: Vec<_> = pieces.chain(reply.chunks(90).map(|piece| (1, piece))).collect();
        [&[number as u8], &crate::connections::bytes(&pieces)[..]].concat()
    };
    short(pairs.enumerate().map(seed))
}

/// Calls of the store: counting bytes, with different steps.
pub fn store_actions() -> Seeds {
    let steps = [1_u32, 7, 37, 101, 151, 211];
    let seed = |step: u32| (0..600).map(|n: u32| (n * step + n * n / 7) as u8).collect();
    steps.into_iter().map(seed).collect()
}

pub fn tapes() -> Seeds {
    vec![crate::tapes::small(false), crate::tapes::small(true)]
}

const TRACES: [&str; 9] = [
    "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n1,has,a,comma,11,40,3,set,86400\n1,n:1,3,0,3,incr,0\n",
    "key,op,size,op_count,key_size\n1668601306,GET,82,1,40\n1668601306,SET,82,2,40\n9,DELETE,0,1,16\n",
    "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase\n\
     1700000000,57,20,GET_LEASE,3,500,2,0,11,12\n1700000001,57,20,SET_LEASE,1,500,0,3600,11,12\n",
    "OK\r\n\
     ts=1795269935.627954 gid=2 type=item_get key=foo status=not_found clsid=0 cfd=25 size=0\n\
     ts=1795269935.627969 gid=3 type=item_store key=foo status=stored cmd=set ttl=60 clsid=1 cfd=25 size=3\n\
     skipped=17\n\
     ts=1795269935.769509 gid=11 type=item_get key=a%2520b status=not_found clsid=0 cfd=26 size=0\n",
    "OK\r\nts=1795705047.35156 gid=10 type=item_get key=k status=not_found clsid=0 cfd=24 size=0\n\
     ts=1795705047.5 gid=9 type=deleted key=a cmd=delete clsid=1 size=3\n\
     ts=1795705047.87 gid=12 type=eviction key=e fetch=no ttl=-1 la=7 clsid=1 size=60\n",
    "\u{feff}time,op,key,size\r\n\r\n0.5,get,a,\r\n0.75,set,a,9\r\n",
    "1219008 REST.PUT.OBJECT 8d4f 1056\n1221974 REST.GET.OBJECT 8d4f 1528\n1232488 REST.HEAD.OBJECT 8d4f 0\n",
    "# time, object, size\n1,42932745,512\n2,42932746,512\n",
    "time,op,key,size,ttl,comment\n0.5,get,a,,,x\n0.75,set,b,100,60,y\n1.25,get,b,100,,\n",
];

/// A request in libCacheSim's oracleGeneral.
fn oracle_general(at_s: u32, object: u64, size: u32) -> Vec<u8> {
    [&at_s.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &[0xff; 8]].concat()
}

pub fn traces() -> Seeds {
    let requests = [(0, 7, 100), (0, u64::MAX, 0), (9, 7, 100)];
    let binary = requests.map(|(at_s, object, size)| oracle_general(at_s, object, size)).concat();
    TRACES.iter().map(|trace| trace.as_bytes().to_vec()).chain([binary]).collect()
}

const METADUMPS: [&str; 3] = [
    "key=ab exp=1795829366 la=1795829266 cas=1 fetch=no cls=1 size=68\n\
     key=c%3Ad exp=-1 la=1795829166 cas=2 fetch=yes cls=1 size=65 flags=7\n",
    "key=old exp=1795829299 la=0 cas=0 fetch=yes cls=1 size=70\nkey=%FF%00 exp=0 la=9 cas=1 fetch=no cls=1 size=64\n",
    "key=k exp=-1 la=99999999999 cas=1 fetch=yes cls=63 size=524288 flags=1 ext_page=3 ext_offset=0\nkey=\n\n",
];

pub fn metadumps() -> Seeds {
    METADUMPS.iter().map(|dump| dump.as_bytes().to_vec()).collect()
}

pub fn packed_traces() -> Seeds {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    let gzip = |trace: &Vec<u8>| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(trace).expect("memory");
        out.finish().expect("memory")
    };
    let zstd = |trace: &Vec<u8>| compress_to_vec(&trace[..], CompressionLevel::Fastest);
    let plain = traces();
    let twice = |packed: Vec<u8>| packed.repeat(2);
    let all = plain.iter().map(zstd).chain(plain.iter().map(gzip)).chain(traces());
    all.chain(plain.iter().map(zstd).map(twice)).chain(plain.iter().map(gzip).map(twice)).collect()
}

/// Blocks of cachemark's own format: how many records, whether they have times, the content of the block.
pub fn trace_files() -> Seeds {
    use cachemark_trace::{Conversion, ImportOptions, Output, convert};
    let conversion = Conversion {
        output: Output::Cachemark,
        anonymous: false,
        sampled: 1,
        rounded: false,
        tolerant: false,
        source: None,
    };
    let file = |trace: &Vec<u8>| {
        let mut file = Vec::new();
        let from = &mut std::io::Cursor::new(trace);
        let options = ImportOptions::default();
        convert(from, &options, &conversion, &mut file, &mut |_| ()).ok().map(|_| file)
    };
    let number =
        |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
    let block = |file: Vec<u8>| {
        // Behind the magic number and the block of the origin.
        let at = 8 + 16 + number(&file[12..]);
        let content = &file[at + 16..][..number(&file[at + 4..])];
        [&file[at + 8..at + 10], &file[at + 1..at + 2], content].concat()
    };
    traces().iter().filter_map(file).map(block).collect()
}

/// Captures of requests, in each kind of file and of link.
pub fn captures() -> Seeds {
    use crate::packets::{FILES, LINKS, asked, capture};
    let request = [&b"get a b\r\n"[..], b"set c 0 60 3\r\nabc\r\n"].concat();
    let sent = asked(&request, &[5, 9]);
    let of =
        |(number, link)| capture(FILES[number % FILES.len()], link, number % 2 == 1, 80, &sent);
    LINKS.into_iter().enumerate().map(of).collect()
}

/// Requests that come in segments, some late and some twice.
pub fn segments() -> Seeds {
    let all = [text_requests(), meta_requests(), binary_requests()].concat();
    let head = [8, 0x2d, 1, 2, 3, 5, 7, 11, 13, 17];
    short(all.chunks(3).map(|requests| [&head[..], &requests.concat()].concat()))
}

/// Requests and the replies to them.
pub fn captured_conversations() -> Seeds {
    let all = |requests: Seeds, replies: Seeds| {
        requests.into_iter().zip(replies).map(|(request, reply)| {
            let part = |side: u8, bytes: &[u8]| {
                let parts = bytes.chunks(127);
                parts.flat_map(|part| [&[(part.len() as u8) << 1 | side], part].concat()).collect()
            };
            let both: [Vec<u8>; 2] = [part(0, &request), part(1, &reply)];
            both.concat()
        })
    };
    let text = all(text_requests(), text_replies()).chain(all(meta_requests(), meta_replies()));
    short(text.chain(all(binary_requests(), binary_replies())))
}

/// Names of the columns of traces.
pub fn trace_columns() -> Seeds {
    let texts = ["time:ms,op,key,size", "time key size -", "key;ttl;key_size;count", "key,key"];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const SCRIPTS: [&str; 7] = [
    "seed = 7\nkey_prefix = 'a'\naccept_ms = 5\ndelay = { kind = 'constant', ms = 1.5 }\n",
    "delay = { kind = 'list', ms = [1, 2, 30] }\ndrop_every = 3\nwrong_every = 2\n",
    "delay = { kind = 'exponential', mean_ms = 1 }\nclose_after = 5\n",
    "[service]\nkind = 'lognormal'\nmedian_ms = 1\nsigma = 0.5\n",
    "service = { kind = 'bimodal', fast_ms = 1, slow_ms = 2, slow_share = 0.1 }\n",
    "[stall]\nstall_ms = 100\nperiod_ms = 1000\nphase_ms = 10\n",
    "chunks = { first_ms = 1, last_ms = 2 }\n",
];

pub fn scripts() -> Seeds {
    SCRIPTS.iter().map(|script| script.as_bytes().to_vec()).collect()
}

/// Each option in each form. One line is a command line.
const OPTIONS: &str = "\
--keys 100 --ops 200 --zipf 0.99 --size 100..1000 --mix get=9,set=1
--keys 100 --ops 200 --distribution hotspot:0.2:0.8 --size gpareto:0:214.476:0.348238 --key-length 16..40
--keys 50 --ops 100 --distribution latest:0.9 --size gev:30.7984:8.20449:0.078688 --exptime 10m
--keys 50 --ops 100 --distribution gaussian:0.1 --size pareto:10:1.5 --exptime 1h..1d --prefill 0.5
--keys 50 --ops 100 --distribution ycsb-zipfian --size lognormal:200:1.2 --compressibility 0.5
--keys 50 --ops 100 --distribution sequential --size 100=9,1k..4k=1 --order phases
--keys 50 --ops 100 --distribution constant --key-pattern user{index:08}-{hex:10}
--key-names a,b,c --ops 50 --sequence set@0|get@0|mget@0-2|get --key-step 1 --run 3
--keys 20 --counters 3 --ops 50 --mix get=5,incr=1,decr_noreply=2,mget=1,set_noreply=1,mset=1 --run 4
--keys 100 --rate 1k --duration 1s --schedule uniform
--keys 100 --rate 100 --duration 500ms --schedule poisson --hit-ratio 0.9 --mix get
--keys 100 --rate 100 --duration 2s --schedule gpareto:0.15 --warmup 0s --timeout 1m
--keys 100 --rate 100 --duration 2s --schedule bursts:5:0.1:100ms
--keys 100 --ops 100 --think exp:1ms --threads 2 --connections 4 --depth 8
--keys 100 --ops 100 --schedule closed --max-errors 0.1% --seed 7
--preset etc --keys 200 --ops 100
--preset ycsb-a --keys 200 --ops 100
--schedule replay:10 --trace nowhere.csv --trace-format twitter
--search p99<1ms --keys 10 --wire meta --hashing ketama";

/// One word on each line. A `|` in OPTIONS stands for a space inside a word.
pub fn options() -> Seeds {
    let words = |line: &str| line.replace(' ', "\n").replace('|', " ").into_bytes();
    OPTIONS.lines().map(words).collect()
}
