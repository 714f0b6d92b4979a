//! Writes the seeds of the corpus, from the digests themselves: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

use fixity::{Algorithm, Hasher};

fn main() -> io::Result<()> {
    let mut hasher = Hasher::new(Algorithm::ALL);
    hasher.update(b"abc");
    let computed = hasher.finish();
    let shown: Vec<_> = Algorithm::ALL
        .iter()
        .filter_map(|&algorithm| computed.get(algorithm))
        .map(ToString::to_string)
        .collect();
    let mut seeds = shown.clone();
    seeds.push(shown.join(" "));
    seeds.push(shown.join("\n").to_uppercase());
    seeds.extend(shown.iter().map(|text| format!("urn:{text}")));
    seeds.extend(
        [
            "sha-256:f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk",
            "sha-256:h986gT_t_87HTkjHYE76G558hY-jdfgy76t55sadJUYT",
            "md5:kAFQmDzST7DWlj99KOF/cg==",
            "urn:sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5",
            "crc32:352441c2 md5: :x sha-1",
        ]
        .map(str::to_owned),
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/hashes");
    fs::create_dir_all(&folder)?;
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), seed)?;
    }
    println!("{} seeds in {}", seeds.len(), folder.display());
    Ok(())
}
