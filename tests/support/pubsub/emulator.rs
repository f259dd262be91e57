//! Starting the emulator's jar, and its end.

use super::jar::{VARIABLE, jar};
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a start takes on a busy machine.
const HANGS: Duration = Duration::from_secs(90);
/// Ends what it starts when its standard input is closed, so also when the process that holds the other end was killed.
const TIED: &str = r#""$@" & read -r _; kill -9 $!"#;

/// An emulator that runs. Dropping it ends it.
pub struct Emulator {
    process: Child,
    /// Host and port.
    pub address: String,
}

impl Emulator {
    /// The one that the tests of this process share. It ends with the process.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Emulator> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Starts one of its own on a free port, and waits until it answers.
    pub fn start() -> Self {
        let jar = jar().unwrap_or_else(|| {
            panic!("the Pub/Sub emulator is missing: `cargo xtask test` says how to get it ({VARIABLE} names its jar)")
        });
        // Another program may take the port before the emulator does: then it ends, and another port is tried.
        for _ in 0..10 {
            if let Some(emulator) = Self::start_on(&jar, free_port()) {
                return emulator;
            }
        }
        panic!("the Pub/Sub emulator ends on every port that is tried");
    }

    fn start_on(jar: &Path, port: u16) -> Option<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", TIED, "sh", "java", "-Xmx2g", "-jar"]).arg(jar);
        command.args(["--host=127.0.0.1", &format!("--port={port}")]);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let stderr = BufReader::new(process.stderr.take().expect("it is piped"));
        let emulator = Self { process, address: format!("127.0.0.1:{port}") };
        let started = Instant::now();
        let mut lines = stderr.lines();
        // It says so when it listens; it ends without that if the port is taken.
        while let Some(Ok(line)) = lines.next() {
            assert!(started.elapsed() < HANGS, "the Pub/Sub emulator does not start");
            if line.contains("Server started") {
                // Nobody may be kept waiting by a full pipe.
                thread::spawn(move || lines.for_each(drop));
                TcpStream::connect(&emulator.address).expect("it listens");
                return Some(emulator);
            }
        }
        None
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        self.process.wait().ok();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").port()
}
