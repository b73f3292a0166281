//! `indexes=` in hwloc's synthetic notation: the OS numbers of a level's objects, listed (`0,2,1,3`), as loops
//! (`2*24:1*2`: step and count, innermost first) or as the names of levels (`core:pu`).

use super::error::excerpt;
use super::synthetic::{LevelKind, kind_of};

/// A level's kind and how many objects of it the machine has.
pub(super) type IndexLevel = (LevelKind, usize);

/// `offset` is in bytes from the beginning of the value.
pub(super) struct IndexError {
    pub offset: usize,
    pub found: String,
    pub expected: String,
}

fn wrong<T>(offset: usize, found: String, expected: &str) -> Result<T, IndexError> {
    Err(IndexError { offset, found, expected: expected.to_string() })
}

/// Numbers for `total` objects in depth-first order.
pub(super) fn parse_indexes(text: &str, total: usize, levels: &[IndexLevel]) -> Result<Vec<u32>, IndexError> {
    if text.bytes().all(|b| b.is_ascii_digit() || b == b',') {
        return listed(text, total);
    }
    let mut loops = if text.starts_with(|c: char| c.is_ascii_digit()) {
        counted_loops(text)?
    } else {
        named_loops(text, total, levels)?
    };
    let product = loops.iter().try_fold(1usize, |product, &(_, count)| product.checked_mul(count));
    let smallest = loops.iter().map(|&(step, _)| step).min().unwrap_or(1);
    match product {
        Some(product) if product == total => {}
        // A loop over the innermost objects may be omitted.
        Some(product) if total.is_multiple_of(product) && smallest == total / product => loops.push((1, smallest)),
        _ => return wrong(0, format!("`{}`", excerpt(text, 32)), &format!("loops over all {total} objects")),
    }
    let number = |object: usize| {
        let mut scale = 1;
        let digit = |&(step, count): &(usize, usize)| {
            let value = object / step % count * scale;
            scale *= count;
            value
        };
        loops.iter().map(digit).sum::<usize>() as u32
    };
    distinct((0..total).map(number).collect(), text)
}

fn distinct(numbers: Vec<u32>, text: &str) -> Result<Vec<u32>, IndexError> {
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => wrong(0, format!("`{}`, which gives {} twice", excerpt(text, 32), pair[0]), "each number once"),
        None => Ok(numbers),
    }
}

fn listed(text: &str, total: usize) -> Result<Vec<u32>, IndexError> {
    let mut numbers = Vec::new();
    let mut offset = 0;
    for word in text.split(',') {
        match word.parse() {
            Ok(number) => numbers.push(number),
            Err(_) => return wrong(offset, format!("`{}`", excerpt(word, 24)), "a number"),
        }
        offset += word.len() + 1;
    }
    if numbers.len() != total {
        return wrong(0, format!("{} indexes", numbers.len()), &format!("{total}, one for each object"));
    }
    distinct(numbers, text)
}

/// `step*count:step*count`.
fn counted_loops(text: &str) -> Result<Vec<(usize, usize)>, IndexError> {
    let mut loops = Vec::new();
    let mut offset = 0;
    for word in text.split(':') {
        let pair = word.split_once('*').and_then(|(step, count)| Some((step.parse().ok()?, count.parse().ok()?)));
        match pair {
            Some((step, count)) if step > 0 && count > 0 => loops.push((step, count)),
            _ => {
                return wrong(
                    offset,
                    format!("`{}`", excerpt(word, 24)),
                    "a step and a count such as 2*24, both above 0",
                );
            }
        }
        offset += word.len() + 1;
    }
    Ok(loops)
}

/// `core:pu`: numbers run over the first named level first.
fn named_loops(text: &str, total: usize, levels: &[IndexLevel]) -> Result<Vec<(usize, usize)>, IndexError> {
    let mut depths = Vec::new();
    let mut offset = 0;
    for word in text.split(':') {
        let depth = kind_of(word).and_then(|kind| levels.iter().position(|&(level, _)| level == kind));
        match depth {
            Some(depth) if !depths.contains(&depth) => depths.push(depth),
            Some(_) => return wrong(offset, format!("`{}` for the second time", excerpt(word, 24)), "each level once"),
            None => return wrong(offset, format!("`{}`", excerpt(word, 24)), "a level of this description"),
        }
        offset += word.len() + 1;
    }
    let mut loops = Vec::new();
    for &depth in &depths {
        let outer = depths.iter().filter(|&&other| other < depth).max();
        let outer_total = outer.map_or(1, |&outer| levels[outer].1);
        let own_total = levels[depth].1;
        if own_total > total || !total.is_multiple_of(own_total) {
            return wrong(0, format!("`{}`", excerpt(text, 32)), "levels outside the one that is numbered");
        }
        loops.push((total / own_total, own_total / outer_total));
    }
    Ok(loops)
}
