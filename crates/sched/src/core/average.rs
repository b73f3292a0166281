//! core.c: a moving average of idle times and their like.

/// core.c: update_avg(). Moves an eighth of the way towards the sample.
pub(crate) fn update_avg(avg: &mut u64, sample: u64) {
    let diff = sample.wrapping_sub(*avg) as i64;
    *avg = avg.wrapping_add_signed(diff >> 3);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_move_an_eighth_of_the_way_in_both_directions() {
        let mut avg = 800;
        update_avg(&mut avg, 1600);
        assert_eq!(avg, 900);
        update_avg(&mut avg, 100);
        assert_eq!(avg, 800);
        // The kernel shifts a negative difference arithmetically, which rounds it away from zero.
        update_avg(&mut avg, 799);
        assert_eq!(avg, 799);
    }
}
