//! Appends messages to a file, to which a later run can append more messages.

use crate::operate::dlq::ArchivedMessage;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A file to which messages are appended. Only its owner can read it.
pub(super) struct ArchiveFile(File);

impl ArchiveFile {
    /// Opens or creates a file, and locks it. If an interrupted run left an incomplete last line, removes this line, so
    /// that more messages can be appended.
    ///
    /// # Errors
    /// The file cannot be opened, it is not an archive, or another run is writing to it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).read(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        // Without the lock, this run could remove lines that another run has just written. Some file systems do not
        // support locks.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another run is writing to the file"));
        }
        let length = complete_length(&mut file)?;
        file.set_len(length)?;
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        Ok(Self(file))
    }

    /// Appends lines, and syncs them to disk.
    ///
    /// # Errors
    /// The lines cannot be written.
    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        self.0.write_all(lines.as_bytes())?;
        self.0.sync_data()
    }
}

/// Returns the total length of the complete lines in a file. The first line must be an archived message, or the
/// beginning of an archived message.
fn complete_length(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(0))?;
    let mut first = String::new();
    let is_text = io::BufReader::new(&mut *file).read_line(&mut first).is_ok();
    // A run that was killed during its first write leaves only the beginning of a message.
    let is_started = first.starts_with("{\"formatVersion\":1,") && !first.ends_with('\n');
    if !is_text || ArchivedMessage::parse(&first).is_err() && !is_started {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the file already exists and was not written by topo dlq",
        ));
    }
    let (mut end, mut chunk) = (length, vec![0; 64 << 10]);
    while end > 0 {
        let start = end.saturating_sub(chunk.len() as u64);
        let size = usize::try_from(end - start).unwrap_or(0);
        file.seek(SeekFrom::Start(start))?;
        let part = chunk.get_mut(..size).unwrap_or_default();
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_lines_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let line = r#"{"formatVersion":1,"vhost":"/","queue":"q","routingKey":"k","encodedProperties":"AAA=","bodyEncoding":"text","body":"b"}"#;
        std::fs::write(&path, format!("{line}\n{line}\n{{\"formatVer")).unwrap();
        ArchiveFile::open(&path).unwrap().append(&format!("{line}\n")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{line}\n{line}\n{line}\n"));
        let read: Vec<_> = ArchivedMessage::read_all(std::fs::read(&path).unwrap().as_slice()).collect();
        assert_eq!(read.len(), 3);
        assert_eq!(read[0].as_ref().unwrap().body, b"b");
        std::fs::write(&path, "{\"formatVersion\":1,\"vh").unwrap();
        ArchiveFile::open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        let first = ArchiveFile::open(&path).unwrap();
        assert_eq!(ArchiveFile::open(&path).map(|_| ()).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop(first);
        std::fs::write(&path, "other\n").unwrap();
        assert_eq!(ArchiveFile::open(&path).map(|_| ()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
