//! One of several shards of a run, for machines that share it.
//!
//! ```text
//! shard i of n explains inputs  floor((i - 1) N / n)  to  floor(i N / n)     (i from 1 on; N inputs in all)
//! ```
//!
//! Shards are consecutive inputs, so that joining them is joining files. Together they are all inputs, whatever `n` is; where
//! there are more shards than inputs, some are empty.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// A shard of a run: number `i` of `n`, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// The inputs that it explains, of so many.
    ///
    /// ```
    /// use brenier::runs::explain::Shard;
    /// let inputs = |shard: &str| shard.parse::<Shard>().unwrap().inputs(10);
    /// assert_eq!((inputs("1/3"), inputs("2/3"), inputs("3/3")), (0..3, 3..6, 6..10));
    /// ```
    pub fn inputs(&self, count: usize) -> Range<usize> {
        let bound = |i: usize| (i as u128 * count as u128 / self.of as u128) as usize;
        bound(self.number - 1)..bound(self.number)
    }

    /// Its folder among those of all shards, once it is whole.
    pub fn folder(&self, shards: &Path) -> PathBuf {
        shards.join(format!("{}-of-{}", self.number, self.of))
    }

    /// Its folder while it is made.
    pub fn unfinished(&self, shards: &Path) -> PathBuf {
        shards.join(format!("unfinished-{}-of-{}", self.number, self.of))
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shard, Error> {
        let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err(Error::Setting {
                name: "the shard",
                value: text.to_string(),
                needs: "a number from 1 on and how many there are, such as 2/8",
                hint: "number the shards 1/8 to 8/8".into(),
            }),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_all_inputs_in_order() {
        for count in [0, 1, 7, 100] {
            for of in [1, 2, 3, 7, 13, 101] {
                let mut next = 0;
                for number in 1..=of {
                    let inputs = Shard { number, of }.inputs(count);
                    assert_eq!(inputs.start, next);
                    assert!(inputs.len() <= count.div_ceil(of));
                    next = inputs.end;
                }
                assert_eq!(next, count);
            }
        }
        let most = Shard { number: usize::MAX, of: usize::MAX };
        assert_eq!(most.inputs(usize::MAX), usize::MAX - 1..usize::MAX);
    }

    #[test]
    fn what_is_no_shard_is_refused() {
        for text in ["0/4", "5/4", "1/0", "1", "a/b", "-1/2", "1/2/3", ""] {
            let message = text.parse::<Shard>().unwrap_err().to_string();
            assert!(message.contains("2/8"), "{message}");
        }
        assert_eq!("3/4".parse::<Shard>().unwrap().to_string(), "3/4");
    }
}
