//! Bytes of a file or a pipe, decompressed where they are compressed.

use flate2::bufread::MultiGzDecoder;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read, Seek as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

/// What a gzip member begins with (RFC 1952).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// What a Zstandard frame begins with (RFC 8878).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// And one that is to be skipped, behind a first byte from 0x50 to 0x5f: some programs begin with such a frame.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

/// Compressed bytes that are read at once.
const COMPRESSED: usize = 1 << 16;

/// An open input. Reading fails with `WouldBlock` if nothing comes within the time that was set.
pub(super) struct Input {
    decoder: Decoder,
    metadata: Metadata,
}

enum Decoder {
    /// What it is, is not known yet.
    Unknown(Source),
    Plain(Source),
    Gzip(Box<MultiGzDecoder<BufReader<Source>>>),
    Zstd(Box<zstd::Decoder<'static, BufReader<Source>>>),
    /// Between two of the others.
    None,
}

struct Source {
    file: File,
    wait: Duration,
    /// Bytes that were read to see what it is.
    front: Vec<u8>,
}

impl Input {
    /// Opens a file, or a pipe that somebody may write to later.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Without blocking: a named pipe that nobody writes to yet would keep the run from being asked to stop.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Self::of(file)
    }

    /// Reads what is open already.
    pub fn of(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let source = Source { file, wait: Duration::ZERO, front: Vec::new() };
        Ok(Self { decoder: Decoder::Unknown(source), metadata })
    }

    /// What the file system says of it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Begins again.
    pub fn rewind(&mut self) -> io::Result<()> {
        let mut source = match std::mem::replace(&mut self.decoder, Decoder::None) {
            Decoder::Unknown(source) | Decoder::Plain(source) => source,
            Decoder::Gzip(decoder) => decoder.into_inner().into_inner(),
            Decoder::Zstd(decoder) => decoder.finish().into_inner(),
            Decoder::None => return Err(gone()),
        };
        source.front.clear();
        let rewound = source.file.rewind();
        self.decoder = Decoder::Unknown(source);
        rewound
    }

    /// Sets how long to wait for a pipe.
    pub fn wait(&mut self, wait: Duration) {
        if let Some(source) = self.source() {
            source.wait = wait;
        }
    }

    /// Bytes of a file that were read, compressed as they are, and its size now.
    pub fn progress(&mut self) -> (u64, u64) {
        let Some(source) = self.source() else { return (0, 0) };
        let at = source.file.stream_position().unwrap_or_default();
        let size = source.file.metadata().map_or(0, |metadata| metadata.len());
        (at, size.max(at))
    }

    fn source(&mut self) -> Option<&mut Source> {
        match &mut self.decoder {
            Decoder::Unknown(source) | Decoder::Plain(source) => Some(source),
            Decoder::Gzip(decoder) => Some(decoder.get_mut().get_mut()),
            Decoder::Zstd(decoder) => Some(decoder.get_mut().get_mut()),
            Decoder::None => None,
        }
    }

    /// Sees what it is.
    fn begin(&mut self) -> io::Result<()> {
        let Decoder::Unknown(source) = &mut self.decoder else { return Ok(()) };
        source.look()?;
        let Decoder::Unknown(source) = std::mem::replace(&mut self.decoder, Decoder::None) else { return Err(gone()) };
        let is_skippable = source.front.len() == ZSTD.len() && may_be_skippable(&source.front);
        let (is_gzip, is_zstd) = (source.front.starts_with(GZIP), source.front == ZSTD || is_skippable);
        self.decoder = if is_gzip {
            Decoder::Gzip(Box::new(MultiGzDecoder::new(BufReader::with_capacity(COMPRESSED, source))))
        } else if is_zstd {
            Decoder::Zstd(Box::new(zstd::Decoder::with_buffer(BufReader::with_capacity(COMPRESSED, source))?))
        } else {
            Decoder::Plain(source)
        };
        Ok(())
    }
}

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.begin()?;
        let damaged = |kind: &str, error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => error,
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), format!("the {kind} archive is cut off")),
            _ => io::Error::new(error.kind(), format!("the {kind} archive is damaged: {error}")),
        };
        match &mut self.decoder {
            Decoder::Plain(source) => source.read(into),
            Decoder::Gzip(decoder) => decoder.read(into).map_err(|error| damaged("gzip", error)),
            Decoder::Zstd(decoder) => decoder.read(into).map_err(|error| damaged("Zstandard", error)),
            Decoder::Unknown(_) | Decoder::None => Err(gone()),
        }
    }
}

/// Whether a frame that is to be skipped may begin so.
fn may_be_skippable(front: &[u8]) -> bool {
    front.split_first().is_none_or(|(first, rest)| (0x50..=0x5f).contains(first) && SKIPPABLE.starts_with(rest))
}

impl Source {
    /// Reads as much as is needed to see what it is.
    fn look(&mut self) -> io::Result<()> {
        let may_be = |front: &[u8]| ZSTD.starts_with(front) || GZIP.starts_with(front) || may_be_skippable(front);
        while self.front.len() < ZSTD.len() && may_be(&self.front) {
            let mut more = [0; ZSTD.len()];
            let wanted = ZSTD.len() - self.front.len();
            match self.read_on(&mut more[..wanted]) {
                Ok(0) => break,
                Ok(got) => self.front.extend_from_slice(&more[..got]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read_on(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let wait = Timespec::try_from(self.wait).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Err(io::ErrorKind::WouldBlock.into()),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        self.file.read(into)
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.front.is_empty() {
            return self.read_on(into);
        }
        let length = into.len().min(self.front.len());
        into[..length].copy_from_slice(&self.front[..length]);
        self.front.drain(..length);
        Ok(length)
    }
}

fn gone() -> io::Error {
    io::Error::other("it failed before")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).unwrap()
    }

    fn file(bytes: &[u8]) -> (tempfile::NamedTempFile, Input) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        let input = Input::open(file.path()).unwrap();
        (file, input)
    }

    /// What could be read, and the error behind it.
    fn read(input: &mut Input) -> (Vec<u8>, Option<io::Error>) {
        let mut all = Vec::new();
        let mut some = [0; 1_000];
        loop {
            match input.read(&mut some) {
                Ok(0) => return (all, None),
                Ok(got) => all.extend_from_slice(&some[..got]),
                Err(error) => return (all, Some(error)),
            }
        }
    }

    #[test]
    fn what_is_compressed_is_told_by_its_first_bytes() {
        let text = b"one\ntwo\n".repeat(1_000);
        let members = [gzip(&text[..100]), gzip(b""), gzip(&text[100..])].concat();
        let frames = [zstd(&text[..100]), zstd(&text[100..])].concat();
        // As pzstd writes it: the size of what follows.
        let skipped = [b"\x50\x2a\x4d\x18\x04\0\0\0abcd".to_vec(), zstd(&text)].concat();
        for bytes in [text.clone(), gzip(&text), members, zstd(&text), frames, skipped] {
            let (_file, mut input) = file(&bytes);
            for _ in 0..2 {
                let (all, error) = read(&mut input);
                assert!(all == text && error.is_none(), "{error:?}");
                assert_eq!(input.progress(), (bytes.len() as u64, bytes.len() as u64));
                input.rewind().unwrap();
            }
        }
        for short in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"a", b"P*", b"P*Ma"] {
            let (_file, mut input) = file(short);
            assert_eq!(read(&mut input).0, short);
        }
    }

    #[test]
    fn a_broken_archive_gives_what_stands_before_the_break() {
        let text: Vec<u8> =
            (0..200_000_u32).flat_map(|n| format!("line {}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        for (kind, bytes) in [("gzip", gzip(&text)), ("Zstandard", zstd(&text))] {
            let (_file, mut input) = file(&bytes[..bytes.len() / 2]);
            let (all, error) = read(&mut input);
            assert!(text.starts_with(&all) && all.len() > text.len() / 10, "{} bytes", all.len());
            assert_eq!(error.unwrap().to_string(), format!("the {kind} archive is cut off"));
            let mut damaged = bytes.clone();
            damaged[bytes.len() / 2..].fill(0xff);
            let (_file, mut input) = file(&damaged);
            let error = read(&mut input).1.unwrap().to_string();
            assert!(error.starts_with(&format!("the {kind} archive is damaged: ")), "{error}");
        }
        let (_file, mut input) = file(&[gzip(&text), b"and no archive".to_vec()].concat());
        let (all, error) = read(&mut input);
        assert!(all == text && error.unwrap().to_string().contains("gzip archive is damaged"));
    }

    /// A decoder that meets the end of what is there goes on when more comes.
    #[test]
    fn a_pipe_gives_what_has_come() {
        let text = b"one\ntwo\n".repeat(1_000);
        for bytes in [gzip(&text), zstd(&text)] {
            let (ours, mut theirs) = std::os::unix::net::UnixStream::pair().unwrap();
            let mut input = Input::of(std::os::fd::OwnedFd::from(ours).into()).unwrap();
            let mut all = Vec::new();
            for byte in bytes {
                theirs.write_all(&[byte]).unwrap();
                let (more, error) = read(&mut input);
                all.extend(more);
                assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
            }
            drop(theirs);
            all.extend(read(&mut input).0);
            assert_eq!(all, text);
        }
    }
}
