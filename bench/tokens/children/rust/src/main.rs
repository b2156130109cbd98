//! Counts files with the bpe-openai crate and times itself: see ../../child.go for the
//! protocol.
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, Write};
use std::time::Instant;

fn main() -> io::Result<()> {
    let encoding = bpe_openai::o200k_base();
    encoding.count("warm");
    let mut texts: HashMap<String, String> = HashMap::new();
    let mut out = io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let paths: Vec<&str> = line.split('\t').collect();
        for path in &paths {
            if !texts.contains_key(*path) {
                texts.insert(path.to_string(), fs::read_to_string(path)?);
            }
        }
        let mut answer = String::new();
        for path in &paths {
            let text = texts[*path].as_str();
            let start = Instant::now();
            let tokens = encoding.count(text);
            let elapsed = start.elapsed().as_nanos();
            let separator = if answer.is_empty() { "" } else { "\t" };
            write!(answer, "{separator}{tokens}:{elapsed}").expect("a string takes all");
        }
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}
