//! A run that is still going on: signals, waiting for what it logs, and its end.

use crate::{Ended, Pipeline};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than any run of a test. A run that hangs is ended by a signal, which no test expects.
const HANGS: Duration = Duration::from_secs(90);

/// Between looks at something that takes a while, so that looking does not hold it up.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// A started `preflight run`. Dropping it kills it.
pub struct Running {
    _watchdog: mpsc::Sender<()>,
    child: Child,
    log: mpsc::Receiver<String>,
    seen: String,
    stdout: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a run of a pipeline, with its standard input open.
    pub fn start(pipeline: &Pipeline) -> (Self, ChildStdin) {
        Self::start_for(pipeline, HANGS)
    }

    /// The same for a run that may take this long.
    pub fn start_for(pipeline: &Pipeline, limit: Duration) -> (Self, ChildStdin) {
        let mut command = pipeline.command("run");
        command.arg("--json").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("preflight can be started");
        let (line, log) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        let mut stdout = child.stdout.take().expect("it is piped");
        let stdout = thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).expect("a report is text");
            text
        });
        let stdin = child.stdin.take().expect("it is piped");
        let (watchdog, ended) = mpsc::channel::<()>();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
        thread::spawn(move || {
            if ended.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                kill_process(pid, Signal::ABORT).ok();
            }
        });
        (Self { _watchdog: watchdog, child, log, seen: String::new(), stdout: Some(stdout) }, stdin)
    }

    /// Waits until it logs a line with this text, and gives the line. Fails if it ends before that.
    #[track_caller]
    pub fn wait_for_log(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.log.recv() else { panic!("it ended without logging {text:?}:\n{}", self.seen) };
            let found = line.contains(text);
            self.seen.push_str(&line);
            self.seen.push('\n');
            if found {
                return line;
            }
        }
    }

    /// Looks again and again until something is so. Fails if it ends before that.
    #[track_caller]
    pub fn wait_until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            assert!(!self.has_ended(), "it ended before that");
            thread::yield_now();
        }
    }

    /// Looks now and then until something is so: for what takes a while. Fails if it ends before that.
    #[track_caller]
    pub fn wait_patiently_until(&mut self, is_so: impl Fn() -> bool) {
        while !is_so() {
            if self.has_ended() {
                self.seen.extend(self.log.iter().flat_map(|line| [line, "\n".into()]));
                panic!("it ended before that:\n{}", self.seen);
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Where its admin endpoint listens, once it does.
    #[track_caller]
    pub fn admin(&mut self) -> String {
        const LISTENS: &str = "admin endpoint listens on http://";
        let line = self.wait_for_log(LISTENS);
        let (_, rest) = line.split_once(LISTENS).expect("it was waited for");
        rest.chars().take_while(|c| c.is_ascii_digit() || ['.', ':', '[', ']'].contains(c)).collect()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_some()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
        kill_process(pid, signal).expect("it has not been waited for, so it is there");
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to stop and waits for its end.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.finish()
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Ended {
        let status = self.child.wait().expect("a child can be waited for");
        self.seen.extend(self.log.iter().flat_map(|line| [line, "\n".into()]));
        let stdout = self.stdout.take().expect("it is joined once").join().expect("the reader does not panic");
        Ended::new(status, stdout, self.seen.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended: then there is nothing to kill.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
