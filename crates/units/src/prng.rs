//! Random streams: one per purpose and per owner, so that drawing from one never shifts another.

/// SplitMix64 seeding of a xoshiro256++ generator (Blackman and Vigna 2019, public domain reference). Values are pinned
/// by a test: they are part of every stored result.
#[derive(Clone, Debug)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// The stream `purpose` (a short fixed name) of `owner` (a task, a CPU, an iteration) under the run's `seed`.
    pub fn stream(seed: u64, purpose: &str, owner: u64) -> Prng {
        // FNV-1a over the name: any fixed mixing would do, what counts is that it never changes.
        let name =
            purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let mut mix = seed ^ name.rotate_left(17) ^ owner.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let state = std::array::from_fn(|_| split_mix(&mut mix));
        Prng { state }
    }

    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound` by multiplication (Lemire 2019, without the rejection step: the bias is below
    /// bound / 2^64). `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a random number below zero was asked for");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "the range {low}..={high} is empty");
        low + self.below((high - low).saturating_add(1))
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_pinned() {
        // They are part of every stored result: whoever changes them changes all of those.
        let mut stream = Prng::stream(1, "placement", 0);
        let first = [716_881_123_342_541_544, 775_201_706_043_898_497, 15_594_573_708_890_404_081];
        assert_eq!([(); 3].map(|()| stream.next_u64()), first);
        assert_eq!(Prng::stream(42, "tick", 7 << 16 | 3).next_u64(), 6_363_890_695_677_160_131);
        assert_eq!(Prng::stream(42, "tick", 7 << 16 | 3).below(1_000), 344);
    }

    #[test]
    fn streams_are_independent_of_each_other() {
        let mut a = Prng::stream(1, "placement", 0);
        let mut again = Prng::stream(1, "placement", 0);
        assert_eq!(a.next_u64(), again.next_u64());
        assert_ne!(Prng::stream(1, "placement", 1).next_u64(), Prng::stream(1, "jitter", 1).next_u64());
        assert_ne!(Prng::stream(1, "placement", 0).next_u64(), Prng::stream(2, "placement", 0).next_u64());
    }

    #[test]
    fn bounded_draws_stay_in_range_and_reach_both_ends() {
        let mut r = Prng::stream(7, "test", 0);
        let draws: Vec<u64> = (0..2_000).map(|_| r.between(3, 9)).collect();
        assert_eq!(draws.iter().min(), Some(&3));
        assert_eq!(draws.iter().max(), Some(&9));
    }
}
