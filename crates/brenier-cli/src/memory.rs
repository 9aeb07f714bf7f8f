//! `--max-memory`: a run that would fill the machine ends with a sentence before the machine does.
//!
//! Files that declare too much are refused before memory is taken (`brenier::memory`). What a run takes all in all
//! is watched: a thread asks the system every few milliseconds how much the process has, and ends it with the number. Files are
//! whole or not there at any moment, and runs in folders go on where they were, so nothing is lost by that.

use std::time::Duration;

use anyhow::{Result, bail};
use brenier::memory;

use crate::output::print_last_words;

/// The part of what is free that a run may take where nothing is said.
const SHARE: f64 = 0.9;
/// How often the system is asked.
const EVERY: Duration = Duration::from_millis(10);

/// Bytes of `2G`, `500MB`, `1.5GiB` or plain bytes.
pub(crate) fn parse(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let factor = match unit.trim().to_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 1.0,
        "k" => 1e3,
        "m" => 1e6,
        "g" => 1e9,
        "t" => 1e12,
        _ => bail!("--max-memory {text} has no unit that is known\nhint: write 4G, 500M, or bytes"),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 => Ok((number * factor) as u64),
        _ => bail!("--max-memory {text} is no size\nhint: write 4G, 500M, or bytes"),
    }
}

/// Watches from now on. Where nothing is said, most of what is free may be taken.
pub(crate) fn watch(limit: Option<&str>) -> Result<()> {
    let Some(limit) = limit.map(parse).transpose()?.or_else(|| Some((SHARE * free()? as f64) as u64)) else {
        // A system that does not say what is free; readers and engines keep their own limits.
        return Ok(());
    };
    memory::set_most(limit);
    let watching = move || {
        loop {
            match taken() {
                Some(taken) if taken > limit => {
                    print_last_words(&format!(
                        "memory: {:.2} GB are taken, and --max-memory allows for {:.2} GB\nhint: give fewer inputs at a \
                         time, fewer --workers, smaller images, or more memory",
                        taken as f64 / 1e9,
                        limit as f64 / 1e9
                    ));
                    std::process::exit(1);
                }
                Some(_) => std::thread::sleep(EVERY),
                None => return,
            }
        }
    };
    // Without the thread readers and engines keep their own limits.
    let _ = std::thread::Builder::new().name("memory".into()).spawn(watching);
    Ok(())
}

/// Bytes that the process has in memory.
fn taken() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Bytes that are free.
fn free() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("2G", 2_000_000_000),
            ("500MB", 500_000_000),
            ("1.5 GiB", 1_500_000_000),
            ("4096", 4096),
            ("3k", 3000),
        ] {
            assert_eq!(parse(text).unwrap(), bytes, "{text}");
        }
        for text in ["", "much", "4 elephants", "-1", "0"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
