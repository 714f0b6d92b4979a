//! Reads exports with other tools.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use export::Format;
use jiff::Timestamp;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

/// The names and bytes in an export, in any format.
pub(crate) fn read(format: &Format, path: &Path) -> BTreeMap<String, Vec<u8>> {
    match format {
        Format::Tar => members(path),
        Format::JsonLines => rows(path).into_iter().map(|row| named(&row)).collect(),
        Format::Parquet => tables(path).into_iter().map(|row| named(&row)).collect(),
        Format::Tree => files(path, path),
        Format::ResourceDump { .. } => packages(path),
    }
}

fn named(row: &Value) -> (String, Vec<u8>) {
    (row["uri"].as_str().unwrap().to_owned(), serde_json::to_vec(row).unwrap())
}

pub(crate) fn rows(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn tables(path: &Path) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut rows = Vec::new();
    for file in files {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            let columns = row.get_column_iter();
            rows.push(columns.map(|(name, field)| (name.clone(), value(field))).collect());
        }
    }
    rows
}

fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Str(text) => text.as_str().into(),
        Field::ULong(number) => (*number).into(),
        Field::TimestampMicros(micros) => Timestamp::from_microsecond(*micros).unwrap().to_string().into(),
        Field::Group(row) => {
            row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
        }
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        other => panic!("no column is a {other}"),
    }
}

fn members(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut tar = tar::Archive::new(File::open(path).unwrap());
    let members = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (name, bytes)
    });
    members.collect()
}

pub(crate) fn files(root: &Path, below: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(root, &path));
        } else {
            let name = path.strip_prefix(root).unwrap().display().to_string();
            all.insert(name, fs::read(&path).unwrap());
        }
    }
    all
}

/// The members of all packages by their resources, and the other documents without the time of their
/// creation.
fn packages(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for (name, bytes) in files(path, path) {
        if !name.ends_with(".zip") {
            let text = String::from_utf8(bytes).unwrap();
            let text: Vec<&str> = text.split(' ').filter(|word| !word.starts_with("completed=")).collect();
            all.insert(name, text.join(" ").into_bytes());
            continue;
        }
        let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
        for number in 0..zip.len() {
            let mut member = zip.by_index(number).unwrap();
            let mut bytes = Vec::new();
            member.read_to_end(&mut bytes).unwrap();
            all.insert(format!("{name}/{}", member.name().unwrap()), bytes);
        }
    }
    all
}
