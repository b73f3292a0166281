//! Least squares with bounds, for a handful of unknowns.

/// A little stiffness, as a share of the steepest slope. It keeps prices with nearly the same effect from drifting
/// apart.
const STIFFNESS: f64 = 0.01;

/// The moves that bring `offs`, weighted, nearest to zero, where a move of unknown `i` by one changes row `r` by
/// `slopes[i][r]`. An unknown that would leave its bounds stays at the bound, and the others are solved again.
pub fn least_squares(slopes: &[Vec<f64>], offs: &[f64], weights: &[f64], bounds: &[(f64, f64)]) -> Vec<f64> {
    let unknowns = slopes.len();
    let mut at_bound: Vec<Option<f64>> = vec![None; unknowns];
    loop {
        let free: Vec<usize> = (0..unknowns).filter(|&it| at_bound[it].is_none()).collect();
        let left: Vec<f64> = offs
            .iter()
            .enumerate()
            .map(|(row, off)| off + (0..unknowns).map(|it| slopes[it][row] * at_bound[it].unwrap_or(0.0)).sum::<f64>())
            .collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).zip(weights).map(|((a, b), w)| a * b * w).sum::<f64>();
        let steepest = free.iter().map(|&it| product(&slopes[it], &slopes[it])).fold(0.0, f64::max);
        let matrix: Vec<Vec<f64>> = free
            .iter()
            .map(|&i| {
                let mut row: Vec<f64> = free
                    .iter()
                    .map(|&j| product(&slopes[i], &slopes[j]) + if i == j { STIFFNESS * steepest } else { 0.0 })
                    .collect();
                row.push(-product(&slopes[i], &left));
                row
            })
            .collect();
        let solution = eliminate(matrix);
        let outside = free.iter().zip(&solution).find_map(|(&it, &by)| {
            let (low, high) = bounds[it];
            (by < low || by > high).then(|| (it, by.clamp(low, high)))
        });
        match outside {
            Some((it, bound)) => at_bound[it] = Some(bound),
            None => {
                for (&it, by) in free.iter().zip(solution) {
                    at_bound[it] = Some(by);
                }
                return at_bound.into_iter().map(|by| by.unwrap_or(0.0)).collect();
            }
        }
    }
}

/// Gauss's elimination of a square system; its right side is the last column. An unknown that nothing depends on is
/// zero.
fn eliminate(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let size = matrix.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()));
        let Some(pivot) = pivot.filter(|&row| matrix[row][column].abs() > 1e-12) else { continue };
        matrix.swap(column, pivot);
        let above = matrix[column].clone();
        for (number, row) in matrix.iter_mut().enumerate() {
            if number != column {
                let share = row[column] / above[column];
                row.iter_mut().zip(&above).for_each(|(value, above)| *value -= share * above);
            }
        }
    }
    (0..size).map(|it| if matrix[it][it].abs() > 1e-12 { matrix[it][size] / matrix[it][it] } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_world_is_solved_in_one_go_but_for_the_stiffness() {
        // Rows are off by 0.2 and -0.1; each unknown moves one of them.
        let moves = least_squares(&[vec![1.0, 0.0], vec![0.0, 2.0]], &[0.2, -0.1], &[1.0; 2], &[(-1.0, 1.0); 2]);
        assert!((moves[0] + 0.2).abs() < 0.01 && (moves[1] - 0.05).abs() < 0.001, "{moves:?}");
    }

    #[test]
    fn who_is_at_a_bound_leaves_the_rest_to_the_others() {
        // Both unknowns have the same effect; the first may move by only a tenth of what is needed.
        let moves = least_squares(&[vec![1.0], vec![1.0]], &[-1.0], &[1.0], &[(-0.1, 0.1), (-2.0, 2.0)]);
        assert_eq!(moves[0], 0.1);
        assert!((moves[1] - 0.9).abs() < 0.02, "{moves:?}");
        assert_eq!(least_squares(&[vec![0.0]], &[1.0], &[1.0], &[(-1.0, 1.0)]), [0.0]);
    }
}
