//! `serve --script`: the fidelity server.

use std::fs;
use std::path::Path;

use cachemark_command::process::stop_flag;
use cachemark_command::whole_file;
use cachemark_scripted::{Script, ScriptedServer, ScriptedServerSettings};

use crate::serve::announcement::announce;
use crate::serve::arguments::Arguments;

/// The answer to `version`. libmemcached refuses a version that begins with 0 or has letters.
const VERSION: &str = "1.6.99";

/// Serve until a signal to stop, then write the log.
pub fn serve(arguments: &Arguments, path: &Path) -> Result<(), String> {
    let place = || format!("--script {}", path.display());
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", place()))?;
    let script = Script::parse(&text).map_err(|error| format!("{}: {error}", place()))?;
    let mut settings = arguments.settings();
    settings.threads = 1;
    let stop = stop_flag(arguments.stop_with_stdin)?;
    let scripted = ScriptedServerSettings {
        script,
        store: settings,
        version: VERSION,
        log_requests: arguments.log_requests as usize,
    };
    let mut server = ScriptedServer::listen(&arguments.endpoints(), scripted)
        .map_err(|error| format!("--listen: {error}"))?;
    announce(&server.addresses(), "scripted", &settings)?;
    server.run(&stop).map_err(|error| error.to_string())?;
    match &arguments.log {
        Some(path) => write_log(path, &server),
        None => Ok(()),
    }
}

fn write_log(path: &Path, server: &ScriptedServer) -> Result<(), String> {
    let text = serde_json::to_string(server.log()).expect("plain values");
    whole_file::write(path, text.as_bytes())
        .map_err(|error| format!("--log {}: {error}", path.display()))
}
