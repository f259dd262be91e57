//! A network between a worker and a server: it can be cut, and can go silent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How often a connection that is silent looks what the network is like.
const LOOK: Duration = Duration::from_millis(20);

/// What the network is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Network {
    /// All goes through.
    Open,
    /// Connections are there, and nothing goes through.
    Silent,
    /// Connections are ended, and new ones end at once.
    Cut,
    /// Nobody uses it any more.
    Gone,
}

/// Passes connections on to a server, as long as it lives.
pub struct Proxy {
    address: String,
    network: Arc<(Mutex<Network>, Condvar)>,
}

impl Proxy {
    /// An open network to a server.
    pub fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let network = Arc::new((Mutex::new(Network::Open), Condvar::new()));
        let (server, shared) = (server.to_owned(), Arc::clone(&network));
        thread::spawn(move || {
            for client in listener.incoming() {
                let now = *shared.0.lock().expect("nobody panics with it");
                let (Ok(client), false) = (client, now == Network::Gone) else { return };
                if now == Network::Cut {
                    continue;
                }
                connect(&client, &server, &shared);
            }
        });
        Self { address, network }
    }

    /// Where it listens: host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// All goes through.
    pub fn open(&self) {
        self.set(Network::Open);
    }

    /// Ends connections, and new ones at once.
    pub fn cut(&self) {
        self.set(Network::Cut);
    }

    /// Leaves connections, and lets nothing through.
    pub fn silence(&self) {
        self.set(Network::Silent);
    }

    fn set(&self, network: Network) {
        *self.network.0.lock().expect("nobody panics with it") = network;
        self.network.1.notify_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Network::Gone);
        // Its thread waits for a connection.
        TcpStream::connect(&self.address).ok();
    }
}

/// Passes a connection on to a server, both ways, until either side ends it.
pub(crate) fn pass(client: &TcpStream, server: &str) {
    connect(client, server, &Arc::new((Mutex::new(Network::Open), Condvar::new())));
}

fn connect(client: &TcpStream, server: &str, network: &Arc<(Mutex<Network>, Condvar)>) {
    if let Ok(server) = TcpStream::connect(server) {
        copy(client, &server, network);
        copy(&server, client, network);
    }
}

/// Copies what comes from one side to the other on a thread of its own.
fn copy(from: &TcpStream, to: &TcpStream, network: &Arc<(Mutex<Network>, Condvar)>) {
    let (mut from, mut to) = (from.try_clone().expect("a socket"), to.try_clone().expect("a socket"));
    from.set_read_timeout(Some(LOOK)).expect("a time is set");
    let network = Arc::clone(network);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let silent = |now: &mut Network| *now == Network::Silent;
            let now = network.0.lock().expect("nobody panics with it");
            let now = *network.1.wait_while(now, silent).expect("nobody panics with it");
            if now != Network::Open {
                break;
            }
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    if to.write_all(&buffer[..length]).is_err() {
                        break;
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
        // Either may be closed already.
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}
