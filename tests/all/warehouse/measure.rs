use super::place::{Place, Target};
use std::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn measure() {
    for place in [Place::fake(), Place::emulator()] {
        let target = Target::new(&place).await;
        let ids: Vec<String> = (0..4_000).map(|row| format!("{row:04}{}", "x".repeat(300))).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let n = if matches!(place, Place::Fake(_)) { 50 } else { 5 };
        let entries: Vec<_> = (0..n).map(|i| target.entry(i * 4_000, &ids)).collect();
        let started = Instant::now();
        for entry in entries {
            target.append_all(vec![entry]).await.remove(0).unwrap();
        }
        let t = started.elapsed();
        eprintln!("MEASURE {n} commits of 4000 rows: {t:?}, {} rows/s", (n as f64) * 4_000.0 / t.as_secs_f64());
        let started = Instant::now();
        for i in 0..100 {
            target.append(n * 4_000 + i, &["small"]).await.unwrap();
        }
        eprintln!("MEASURE one small append: {:?}", started.elapsed() / 100);
    }
}
