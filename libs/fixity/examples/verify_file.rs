//! Compares a file with the digests that a Source declares for it, written as in the `hash` attribute of an entry.
//!
//! ```sh
//! cargo run -p fixity --example verify_file -- Cargo.toml "md5:900150983cd24fb0d6963f7d28e17f72"
//! ```

use std::error::Error;
use std::fs::File;
use std::io::Read as _;
use std::process::ExitCode;

use fixity::{Hasher, Verdict, judge, parse_hashes};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("pass the path of a file, then the declared digests")?;
    let declared = parse_hashes(&arguments.next().unwrap_or_default());
    for value in &declared.unjudged {
        println!("not compared, its algorithm is unknown: {value:?}");
    }

    // SHA-256 is always computed; the declared algorithms are added to the same pass over the bytes.
    let mut hasher = Hasher::new(declared.known.iter().map(|digest| digest.algorithm()));
    let mut file = File::open(path)?;
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            break;
        }
        hasher.update(&piece[..length]);
    }
    let computed = hasher.finish();
    println!("sha-256:{}", computed.sha256());

    match judge(&declared.known, None, &computed) {
        Verdict::Verified { by } => println!("verified by {by:?}"),
        Verdict::LengthOnly | Verdict::NothingDeclared => println!("nothing to compare with"),
        Verdict::Mismatch { what } => {
            println!("mismatch: {what}");
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
