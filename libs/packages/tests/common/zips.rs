//! Builds ZIPs byte by byte, with deliberate errors.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

pub const STORED: u16 = 0;
pub const DEFLATE: u16 = 8;

/// The fields that both a member's header and the directory have.
#[derive(Clone)]
pub struct Fields {
    pub name: Vec<u8>,
    pub flags: u16,
    pub method: u16,
    pub crc32: u32,
    pub compressed: u32,
    pub size: u32,
    pub extra: Vec<u8>,
}

#[derive(Clone)]
pub struct Part {
    pub local: Fields,
    pub central: Fields,
    pub data: Vec<u8>,
    /// The header's offset in the directory; its real one, if `None`.
    pub offset: Option<u32>,
    pub made_by: u16,
    pub attributes: u32,
    pub disk: u16,
    /// The signature of the header.
    pub signature: u32,
}

/// The end record, and the kind of the ZIP64 ones.
#[derive(Clone)]
pub struct End {
    pub disk: u16,
    pub here: u16,
    pub members: u16,
    pub size: u32,
    pub directory: u32,
    pub comment: Vec<u8>,
}

#[derive(Clone, Default)]
pub struct End64 {
    pub disk: u32,
    pub disks: u32,
    pub here: u64,
    pub members: u64,
    pub size: u64,
    pub directory: u64,
    pub locator: u64,
}

#[derive(Default, Clone)]
pub struct Zip {
    /// Bytes before the archive; the offsets do not include them.
    pub preamble: Vec<u8>,
    pub parts: Vec<Part>,
    /// Bytes between the last member and the directory.
    pub gap: Vec<u8>,
    pub comment: Vec<u8>,
    pub trailing: Vec<u8>,
    pub zip64: bool,
}

pub fn deflate(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A ZIP64 extra field with these numbers.
pub fn zip64_field(numbers: &[u64]) -> Vec<u8> {
    let mut field = vec![1, 0];
    field.extend((numbers.len() as u16 * 8).to_le_bytes());
    numbers.iter().for_each(|number| field.extend(number.to_le_bytes()));
    field
}

impl Zip {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn stored(self, name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        self.part(name.as_ref(), STORED, content, content.to_vec())
    }

    pub fn deflated(self, name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        self.part(name.as_ref(), DEFLATE, content, deflate(content))
    }

    fn part(mut self, name: &[u8], method: u16, content: &[u8], data: Vec<u8>) -> Self {
        let fields = Fields {
            name: name.to_vec(),
            flags: 0,
            method,
            crc32: crc32fast::hash(content),
            compressed: data.len() as u32,
            size: content.len() as u32,
            extra: Vec::new(),
        };
        let central = fields.clone();
        let signature = 0x0403_4b50;
        let part = Part {
            local: fields,
            central,
            data,
            offset: None,
            made_by: 20,
            attributes: 0,
            disk: 0,
            signature,
        };
        self.parts.push(part);
        self
    }

    /// Changes the last member.
    pub fn but(mut self, change: impl FnOnce(&mut Part)) -> Self {
        change(self.parts.last_mut().unwrap());
        self
    }

    /// Changes the last member in both places alike.
    pub fn both(self, change: impl Fn(&mut Fields)) -> Self {
        self.but(|part| {
            change(&mut part.local);
            change(&mut part.central);
        })
    }

    /// Changes the parts around the members.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub fn build(&self) -> Vec<u8> {
        self.build_with(|_, _| {})
    }

    pub fn build_with(&self, change: impl FnOnce(&mut End, &mut End64)) -> Vec<u8> {
        let base = self.preamble.len();
        let mut out = self.preamble.clone();
        let mut offsets = Vec::new();
        for part in &self.parts {
            offsets.push((out.len() - base) as u32);
            let local = &part.local;
            out.extend(part.signature.to_le_bytes());
            put16(&mut out, &[45, local.flags, local.method, 0, 0]);
            put32(&mut out, &[local.crc32, local.compressed, local.size]);
            put16(&mut out, &[local.name.len() as u16, local.extra.len() as u16]);
            out.extend(&local.name);
            out.extend(&local.extra);
            out.extend(&part.data);
        }
        out.extend(&self.gap);
        let directory = (out.len() - base) as u64;
        for (part, offset) in self.parts.iter().zip(offsets) {
            let central = &part.central;
            put32(&mut out, &[0x0201_4b50]);
            put16(&mut out, &[part.made_by, 45, central.flags, central.method, 0, 0]);
            put32(&mut out, &[central.crc32, central.compressed, central.size]);
            put16(&mut out, &[central.name.len() as u16, central.extra.len() as u16, 0, part.disk, 0]);
            put32(&mut out, &[part.attributes, part.offset.unwrap_or(offset)]);
            out.extend(&central.name);
            out.extend(&central.extra);
        }
        let size = (out.len() - base) as u64 - directory;
        let members = self.parts.len() as u64;
        let mut end64 = End64 { disks: 1, here: members, members, size, directory, ..End64::default() };
        end64.locator = directory + size;
        let short = |number: u64| if self.zip64 { u32::MAX } else { number as u32 };
        let count = if self.zip64 { u16::MAX } else { members as u16 };
        let mut end = End {
            disk: 0,
            here: count,
            members: count,
            size: short(size),
            directory: short(directory),
            comment: self.comment.clone(),
        };
        change(&mut end, &mut end64);
        if self.zip64 {
            put32(&mut out, &[0x0606_4b50, 44, 0]);
            put16(&mut out, &[45, 45]);
            put32(&mut out, &[end64.disk, 0]);
            put64(&mut out, &[end64.here, end64.members, end64.size, end64.directory]);
            put32(&mut out, &[0x0706_4b50, 0]);
            put64(&mut out, &[end64.locator]);
            put32(&mut out, &[end64.disks]);
        }
        put32(&mut out, &[0x0605_4b50]);
        put16(&mut out, &[end.disk, 0, end.here, end.members]);
        put32(&mut out, &[end.size, end.directory]);
        put16(&mut out, &[end.comment.len() as u16]);
        out.extend(&end.comment);
        out.extend(&self.trailing);
        out
    }
}

fn put16(out: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn put32(out: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}

fn put64(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
}
