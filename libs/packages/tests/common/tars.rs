//! Builds tars block by block, with deliberate errors.

use async_compression::tokio::write::{GzipEncoder, XzEncoder, ZstdEncoder};
use packages::Compression;
use tokio::io::AsyncWriteExt as _;

#[derive(Default, Clone)]
pub struct Tar(pub Vec<u8>);

/// A header with a valid checksum.
pub fn header(typeflag: u8, name: &[u8], size: u64) -> [u8; 512] {
    let mut header = [0; 512];
    header[..name.len()].copy_from_slice(name);
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
    header[156] = typeflag;
    header[257..265].copy_from_slice(b"ustar\x0000");
    sum(&mut header);
    header
}

/// Makes the checksum valid.
pub fn sum(header: &mut [u8; 512]) {
    header[148..156].copy_from_slice(b"        ");
    let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

pub fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (1..).find(|digits| (rest + digits).to_string().len() == *digits).unwrap() + rest;
    format!("{length} {key}={value}\n").into_bytes()
}

impl Tar {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(b'0', name, content)
    }

    pub fn entry(self, typeflag: u8, name: &str, content: &[u8]) -> Self {
        self.raw(&header(typeflag, name.as_bytes(), content.len() as u64), content)
    }

    /// Any header, then content padded to whole blocks.
    pub fn raw(mut self, header: &[u8; 512], content: &[u8]) -> Self {
        self.0.extend(header);
        self.0.extend(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    pub fn pax(self, records: &[(&str, &str)]) -> Self {
        let data: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry(b'x', "PaxHeaders/x", &data)
    }

    pub fn long_name(self, name: &str) -> Self {
        self.entry(b'L', "././@LongLink", &[name.as_bytes(), b"\0"].concat())
    }

    pub fn end(mut self) -> Vec<u8> {
        self.0.extend([0; 1024]);
        self.0
    }
}

pub fn compressed(tar: &[u8], compression: Compression) -> Vec<u8> {
    super::block_on(async {
        macro_rules! with {
            ($encoder:expr) => {{
                let mut encoder = $encoder;
                encoder.write_all(tar).await.unwrap();
                encoder.shutdown().await.unwrap();
                encoder.into_inner()
            }};
        }
        match compression {
            Compression::Plain => tar.to_vec(),
            Compression::Gzip => with!(GzipEncoder::new(Vec::new())),
            Compression::Xz => with!(XzEncoder::new(Vec::new())),
            Compression::Zstd => with!(ZstdEncoder::new(Vec::new())),
        }
    })
}

pub const ALL: [Compression; 4] = [Compression::Plain, Compression::Gzip, Compression::Xz, Compression::Zstd];
