//! A writer for listeners, whose methods cannot return an error: it keeps the first one for the end.

use std::io::{self, Write};

/// Buffers its output, and writes nothing more after the first error.
pub(crate) struct Output<W: Write> {
    writer: io::BufWriter<W>,
    error: Option<io::Error>,
}

impl<W: Write> Output<W> {
    pub fn new(writer: W) -> Output<W> {
        Output { writer: io::BufWriter::with_capacity(1 << 16, writer), error: None }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.writer.write_all(bytes).err();
        }
    }

    /// Nothing more will be written.
    pub fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Flushes and returns the writer, or the first error.
    pub fn finish(self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Full;

    impl Write for Full {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_first_error_comes_out_at_the_end() {
        let mut output = Output::new(Full);
        output.write(&vec![0; 1 << 17]);
        assert!(output.has_failed());
        output.write(b"more");
        let error = output.finish().map(|_| ()).expect_err("a full disk");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn what_is_buffered_fails_at_the_end_too() {
        let mut output = Output::new(Full);
        output.write(b"little");
        assert!(output.finish().is_err());
    }
}
