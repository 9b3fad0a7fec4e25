//! The verb `store`: make, show, empty and destroy a named store in shared memory.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind};
use std::process::ExitCode;

use cachemark_command::process::{end_listing, fail, print_compact_json, print_error, print_text};
use cachemark_command::units;
use cachemark_store::{NamedStore, Owner, Settings, free_bytes, now_s, write_items};
use clap::Subcommand;
use serde::Serialize;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a store in shared memory, which stays until it is destroyed or the machine restarts
    Init {
        /// 1 to 200 letters, digits, dots, hyphens or underscores
        name: String,
        /// The most memory that it uses
        #[arg(long, default_value = "64m", value_parser = units::bytes)]
        memory: u64,
        /// Give the hash table 2 to this power slots, and do not let it grow
        #[arg(long)]
        hash_power: Option<u32>,
        /// The permissions of its file; every user of the store must be allowed to read and write it
        #[arg(long, default_value = "0600", value_parser = mode)]
        mode: u32,
    },
    /// Print the contents of a store
    Stat {
        #[command(flatten)]
        opened: Opened,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Print a line of JSON for each item
    Dump {
        #[command(flatten)]
        opened: Opened,
        /// With the values
        #[arg(long)]
        values: bool,
    },
    /// Remove all items
    Flush {
        #[command(flatten)]
        opened: Opened,
    },
    /// Remove the store; programs that have it open keep it until they close it
    Destroy {
        #[command(flatten)]
        opened: Opened,
    },
}

/// A store that is there.
#[derive(clap::Args)]
struct Opened {
    name: String,
    /// The number of the user whose store it is, if it is another than your own
    #[arg(long, value_name = "UID")]
    owner: Option<u32>,
}

impl Opened {
    fn open(&self) -> io::Result<NamedStore> {
        NamedStore::open_of(&self.name, self.owner())
    }

    fn owner(&self) -> Owner {
        self.owner.map_or(Owner::Own, Owner::User)
    }
}

#[derive(Serialize)]
struct Statistics {
    limit_bytes: u64,
    item_bytes: u64,
    table_bytes: u64,
    items: u64,
}

fn mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("{text:?} are no permissions: write 0600 or 0660"))
}

/// Run the verb and return the exit code.
pub fn run(arguments: Arguments) -> ExitCode {
    let done = match arguments.action {
        Action::Init { name, memory, hash_power, mode } => init(&name, memory, hash_power, mode),
        Action::Stat { opened, json } => stat(&opened, json),
        Action::Dump { opened, values } => dump(&opened, values),
        Action::Flush { opened } => opened.open().map(|store| store.flush(0, now_s())),
        Action::Destroy { opened } => NamedStore::destroy_of(&opened.name, opened.owner()),
    };
    done.map_or_else(|error| fail(format!("store: {error}")), |()| ExitCode::SUCCESS)
}

fn init(name: &str, memory: u64, hash_power: Option<u32>, mode: u32) -> io::Result<()> {
    let memory_bytes = usize::try_from(memory)
        .map_err(|_| io::Error::new(ErrorKind::InvalidInput, "more memory than addresses"))?;
    let store = NamedStore::create(name, &Settings { memory_bytes, hash_power, mode })?;
    if let Some(free) = free_bytes().filter(|free| *free < memory) {
        print_error(&format!(
            "store: note: shared memory has {} MiB free, less than the store may use: a program that writes when \
             nothing is left is killed (SIGBUS); `mount -o remount,size=` gives /dev/shm more",
            free >> 20
        ));
    }
    print_text(format_args!("{name}: {}\n", store.path().display()));
    Ok(())
}

fn stat(opened: &Opened, json: bool) -> io::Result<()> {
    let usage = opened.open()?.usage(now_s());
    let found = Statistics {
        limit_bytes: usage.limit_bytes,
        item_bytes: usage.bytes,
        table_bytes: usage.table_bytes,
        items: usage.items,
    };
    if json {
        print_compact_json(&found);
        return Ok(());
    }
    let line = |name: &str, value: &dyn Display| print_text(format_args!("{name:12} {value}\n"));
    line("items", &found.items);
    line("item bytes", &found.item_bytes);
    line("table bytes", &found.table_bytes);
    line("limit bytes", &found.limit_bytes);
    Ok(())
}

fn dump(opened: &Opened, values: bool) -> io::Result<()> {
    let store = opened.open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    end_listing(write_items(&store, values, &mut out));
    Ok(())
}
