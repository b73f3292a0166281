//! Virtual time, lag, placement, new weights and protection, compared with v7.2's own arithmetic.
//!
//! Made by compiling avg_vruntime(), entity_lag(), update_entity_lag(), vruntime_eligible(), set_protect_slice(),
//! place_entity() and rescale_entity() of Debian's 7.2.13 into a separate 64-bit program, with ticks of 1 ms.

use super::eevdf::queue_of;
use super::*;

/// Four entities: shown weight, slice in ns, and vruntime and deadline in ns after the start. The first runs, the
/// second and third wait, the fourth joins them; then the second and the first get other weights, and the third's lag
/// is computed.
type Entities = [(u64, u32, i64, i64); 4];

/// V and the first one's protected vruntime; the fourth's lag, its place, its deadline, and the origin of the sums
/// after that; a weight; the second's vruntime and deadline with a quarter of that weight, the first's with that
/// weight, and its protected vruntime; the third's lag, whether that was limited, and which are eligible, the first in
/// the highest bit.
type Expected = [i64; 15];

#[rustfmt::skip]
const ROWS: [(Entities, Expected); 14] = [
    ([(88761, 2935515, -1760688, -749835), (88761, 2522749, -502799, 736104), (1024, 2594545, -324091, 723993), (9548, 1763195, -1172962, 795691)], [-1127112, -1731585, 1550259, -2760273, -2571175, -1127112, 14057, -63276, 47943967, -1651771, 4731122, -1468004, -1457092, 0, 1]),
    ([(110, 2823259, -865927, -393069), (110, 3195778, -373159, -263451), (110, 355755, 745479, 1527835), (15, 2729385, 707895, 977545)], [-164536, -393069, 1873575, -2123273, 184202743, -164536, 136535, -250096, -249743, -250195, -249814, -249814, -995178, 0, 13]),
    ([(110, 1945812, -116997, 1129468), (15, 1355070, 580323, 2491700), (15, 1822959, -720180, 1358938), (88761, 2878599, -437887, 645406)], [-106911, 1129468, -1905714, 1210035091, 1210068300, 1210035091, 77120, 1207923377, 1207191381, 1208208616, 1206538327, 1206538327, 264779025, 1, 14]),
    ([(335, 3137759, -319448, 1824065), (335, 2065140, 1863874, 1879008), (3121, 703108, 1181389, 2468616), (1024, 2067476, 113265, 1842267)], [1109073, 1824065, 1388956, -655058, 1412418, 1109073, 151061, 743920, 744054, 731561, 736313, 736313, -447493, 0, 9]),
    ([(9548, 1541852, -1304758, 526247), (9548, 3114418, -1947982, -1495558), (88761, 2339712, -1823107, 395455), (1024, 258997, -1341914, 338557)], [-1788275, 526247, 1431941, -3233810, -2974813, -1788275, 69200, -1882510, -1632815, -1740987, -1480644, -1480644, 18211, 0, 7]),
    ([(1024, 1064894, 1392376, 1667968), (15, 514902, 933696, 3537049), (15, 3083440, 949725, 1599398), (1024, 594984, 519767, 2693741)], [1379548, 1667968, -944810, 3242275, 3837259, 1379548, 62826, 2296163, 2298648, 2282713, 2287205, 2287205, 1347740, 0, 14]),
    ([(15, 372874, -1696687, -607865), (3121, 372692, -3456, 1869240), (1024, 221658, 339892, 942196), (110, 2522480, -917411, 20827)], [74955, -607865, -2011693, 2139841, 25621836, 74955, 56340, 98987, 513944, 127663, 127953, 127953, -211744, 0, 12]),
    ([(110, 1750437, -1990370, 32855), (9548, 1783021, 945434, 1750259), (335, 1547138, -1864381, -996603), (110, 1821456, -359493, 1575850)], [818922, 32855, 1467994, -665231, 16290868, 818922, 91742, 862156, 1197203, 799413, 801839, 801839, 2667143, 0, 11]),
    ([(335, 1021670, 1491034, 2345887), (15, 2236469, -188259, 2595880), (110, 828216, -356137, 2039306), (88761, 937968, 1323594, 3803409)], [994559, 2345887, 1853120, -358434179, -358423359, -358434179, 95606, -356442401, -356355649, -356564359, -355341293, -355341293, -30128584, 1, 1]),
    ([(9548, 2429000, -1440186, -1225679), (110, 2986676, -353656, 1427118), (88761, 1228599, -525357, -476840), (1024, 1187094, 1552898, 3536487)], [-613917, -1308422, -2647281, 2060907, 3248001, -613917, 121819, -585533, -579101, -619884, -636480, -642966, -44203, 0, 12]),
    ([(88761, 2901612, 1427931, 3930930), (15, 591433, 1996703, 3482990), (1024, 2162515, -310213, 1969949), (110, 380051, 1612821, 3842857)], [1408205, 1434754, 1730429, -324343, 3213586, 1408205, 159523, 1406308, 1406867, 1418240, 2810947, 1422037, 1716298, 0, 3]),
    ([(110, 346168, -413558, 2399780), (9548, 2762489, -103331, 1614455), (88761, 2687632, 411431, 1132549), (110, 2689254, -553657, -334791)], [360569, 2399780, -1735257, 2097765, 27132274, 360569, 53455, 74209, 1256987, 366715, 372503, 372503, -43108, 0, 12]),
    ([(88761, 2415233, 11414, 1278772), (110, 2888618, -556057, 485384), (9548, 1130738, 1678027, 4001736), (3121, 2601684, 1134438, 3103247)], [172464, 24458, -2328948, 2575266, 3428878, 172464, 76233, 241687, 247697, 194085, 1448443, -12002, -417044, 1, 12]),
    ([(1024, 264822, 707690, 930601), (335, 1853441, -1497854, -1139853), (88761, 3010454, -1479711, 294442), (15, 680715, 638575, 1225943)], [-1454924, 930601, -1437664, -17021, 46453123, -1454924, 182830, -1455001, -1452378, -1442574, -1441326, -1441326, 25026, 0, 6]),
];

fn reweight(s: &mut Sched<Hand>, cfs: CfsRqId, se: SeId, weight: u64) {
    let relative = s.begin_reweight(cfs, se);
    s.rescale_entity(se, weight, Some(relative));
    s.se[se].load = LoadWeight { weight, inv_weight: 0 };
    s.end_reweight(cfs, se, relative);
}

#[test]
fn agrees_with_the_kernels_own_arithmetic() {
    for (entities, expected) in ROWS {
        let (mut s, cfs, ses) = queue_of(V7_2, 4, |i| (0, entities[i].2, entities[i].3));
        let base = s.cfs_rq[cfs].zero_vruntime;
        let from = |vruntime: u64| vruntime.wrapping_sub(base) as i64;
        for (&se, (weight, slice, ..)) in ses.iter().zip(entities) {
            s.__dequeue_entity(cfs, se);
            let entity = &mut s.se[se];
            entity.load = LoadWeight { weight: weight << 10, inv_weight: 0 };
            (entity.slice, entity.custom_slice) = (slice, true);
        }
        for &se in &ses[..3] {
            s.__enqueue_entity(cfs, se);
        }
        s.se[ses[3]].on_rq = false;
        s.cfs_rq[cfs].nr_running = 3;
        s.set_next_entity(cfs, ses[0], true);
        let mut seen = vec![from(s.avg_vruntime(cfs)), from(s.se[ses[0]].vprot), expected[2]];

        s.se[ses[3]].vlag = expected[2];
        s.place_entity_eevdf(cfs, ses[3], QueueFlags::default(), 3);
        s.__enqueue_entity(cfs, ses[3]);
        s.se[ses[3]].on_rq = true;
        s.cfs_rq[cfs].nr_running = 4;
        let joined = &s.se[ses[3]];
        seen.extend([from(joined.vruntime), from(joined.deadline), from(s.cfs_rq[cfs].zero_vruntime), expected[6]]);

        reweight(&mut s, cfs, ses[1], (expected[6] as u64) << 8);
        reweight(&mut s, cfs, ses[0], (expected[6] as u64) << 10);
        let [first, second] = [0, 1].map(|i| &s.se[ses[i]]);
        seen.extend([from(second.vruntime), from(second.deadline)]);
        seen.extend([from(first.vruntime), from(first.deadline), from(first.vprot)]);

        let limited = s.update_entity_lag(cfs, ses[2]);
        let eligible = ses.iter().fold(0, |bits, &se| bits << 1 | i64::from(s.entity_eligible(cfs, se)));
        seen.extend([s.se[ses[2]].vlag, i64::from(limited), eligible]);
        assert_eq!(seen, expected, "{entities:?}");
    }
}
