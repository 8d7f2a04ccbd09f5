//! Classifies handwritten digits with two networks that `build.rs` compiled from ONNX to native code.
//!
//! Reads the 200 held-out images, draws some with the answers, and prints accuracy, time and size of each model.

mod npy;

use std::time::Instant;

tvm_runtime::include_module!(mlp);
tvm_runtime::include_module!(cnn);

const IMAGES: &[u8] = include_bytes!("../data/images.npy");
const LABELS: &[u8] = include_bytes!("../data/labels.npy");
const MLP_LOGITS: &[u8] = include_bytes!("../data/mlp_logits.npy");
const CNN_LOGITS: &[u8] = include_bytes!("../data/cnn_logits.npy");

const PIXELS: usize = 28 * 28;
const CLASSES: usize = 10;

/// How far a logit may be from the one PyTorch computed: both sum some hundred products of order 1 in `f32`, in another order.
const TOLERANCE: f32 = 1e-4;

type Image = [f32; PIXELS];
type Logits = [f32; CLASSES];

/// What a model said of all images.
struct Report {
    answers: Vec<usize>,
    max_error: f32,
    micros: f64,
}

fn main() -> Result<(), String> {
    let images: Vec<Image> = npy::data(IMAGES, "|u1")?
        .chunks_exact(PIXELS)
        .map(|p| std::array::from_fn(|i| f32::from(p[i]) / 255.0))
        .collect();
    let labels: Vec<usize> = npy::data(LABELS, "|u1")?.iter().map(|l| usize::from(*l)).collect();

    let mut mlp = mlp::Module::new();
    let mut cnn = cnn::Module::new();
    let by_mlp = classify(&images, &npy::f32s(MLP_LOGITS)?, |image| mlp.main(image));
    let by_cnn = classify(&images, &npy::f32s(CNN_LOGITS)?, |image| cnn.main(image));

    for (i, image) in images.iter().enumerate().step_by(67) {
        println!("image {i}: mlp says {}, cnn says {}, it is {}", by_mlp.answers[i], by_cnn.answers[i], labels[i]);
        draw(image);
    }
    println!("model  accuracy  max |logit - reference|  time per image  arena     weights");
    print("mlp", &by_mlp, &labels, mlp::ARENA_BYTES, mlp::WEIGHT_BYTES);
    print("cnn", &by_cnn, &labels, cnn::ARENA_BYTES, cnn::WEIGHT_BYTES);
    if let Ok(size) = std::env::current_exe().and_then(std::fs::metadata).map(|m| m.len()) {
        println!("this program with both models: {} KB", size / 1024);
    }
    let worst = by_mlp.max_error.max(by_cnn.max_error);
    if worst.is_nan() || worst > TOLERANCE {
        return Err(format!("logits differ from the reference by {worst:e}, allowed is {TOLERANCE:e}"));
    }
    Ok(())
}

/// Runs a model on every image: once for the answers, then again for the time.
fn classify(images: &[Image], reference: &[f32], mut model: impl FnMut(&Image) -> Logits) -> Report {
    let logits: Vec<Logits> = images.iter().map(&mut model).collect();
    let error = |(a, b): (&f32, &f32)| (a - b).abs();
    let max_error = logits.as_flattened().iter().zip(reference).map(error).fold(0.0, f32::max);

    const ROUNDS: u32 = 20;
    let start = Instant::now();
    for _ in 0..ROUNDS {
        for image in images {
            std::hint::black_box(model(std::hint::black_box(image)));
        }
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS) / images.len() as f64;
    Report { answers: logits.iter().map(argmax).collect(), max_error, micros }
}

fn argmax(logits: &Logits) -> usize {
    (1..CLASSES).fold(0, |best, i| if logits[i] > logits[best] { i } else { best })
}

fn print(name: &str, report: &Report, labels: &[usize], arena: usize, weights: usize) {
    let right = report.answers.iter().zip(labels).filter(|(a, l)| a == l).count();
    let accuracy = 100.0 * right as f64 / labels.len() as f64;
    println!(
        "{name}    {accuracy:5.1} %   {:<23.1e}  {:8.2} us     {:5.1} KB  {:6.1} KB",
        report.max_error,
        report.micros,
        arena as f64 / 1024.0,
        weights as f64 / 1024.0
    );
}

/// Two pixel rows a text line.
fn draw(image: &Image) {
    const SHADES: [char; 5] = [' ', '.', 'o', 'O', '#'];
    for rows in image.chunks_exact(2 * 28) {
        let line: String = (0..28)
            .map(|x| {
                let ink = (rows[x] + rows[28 + x]) / 2.0;
                SHADES[((ink * 5.0) as usize).min(4)]
            })
            .collect();
        println!("  {}", line.trim_end());
    }
}
