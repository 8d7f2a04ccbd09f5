//! Where Resize looks for the elements of its output, and with what weights.

/// How elements are chosen or weighed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kernel {
    /// One element.
    Nearest(Nearest),
    /// By distance.
    Linear,
    /// By a cubic of the distance with this coefficient.
    Cubic(f64),
}

/// Which element is nearest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Nearest {
    /// The nearer one, of two as near that before.
    PreferFloor,
    /// The nearer one, of two as near that behind.
    PreferCeil,
    /// The one before.
    Floor,
    /// The one behind.
    Ceil,
}

impl Nearest {
    /// By its name.
    pub(super) fn parse(name: &str) -> Option<Nearest> {
        Some(match name {
            "round_prefer_floor" => Nearest::PreferFloor,
            "round_prefer_ceil" => Nearest::PreferCeil,
            "floor" => Nearest::Floor,
            "ceil" => Nearest::Ceil,
            _ => return None,
        })
    }
}

/// What place of the input a place of the output is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    TfCropAndResize,
}

impl Coordinates {
    /// By their name.
    pub(super) fn parse(name: &str) -> Option<Coordinates> {
        Some(match name {
            "half_pixel" => Coordinates::HalfPixel,
            "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
            "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            "tf_half_pixel_for_nn" => Coordinates::TfHalfPixelForNn,
            "tf_crop_and_resize" => Coordinates::TfCropAndResize,
            _ => return None,
        })
    }

    /// The place in an input of `input` elements of place `y` of `output`.
    fn place(self, y: f64, (input, output): (i64, i64), scale: f64, (start, end): (f64, f64)) -> f64 {
        let width = scale * input as f64;
        let last = input as f64 - 1.0;
        match self {
            Coordinates::AlignCorners if width == 1.0 => 0.0,
            Coordinates::AlignCorners => y * last / (width - 1.0),
            Coordinates::Asymmetric => y / scale,
            Coordinates::TfCropAndResize => {
                let size = end - start;
                let within = if width == 1.0 { size * last / 2.0 } else { y * size * last / (width - 1.0) };
                within + start * last
            }
            Coordinates::PytorchHalfPixel if width == 1.0 => -0.5,
            Coordinates::PytorchHalfPixel | Coordinates::HalfPixel => (y + 0.5) / scale - 0.5,
            Coordinates::TfHalfPixelForNn => (y + 0.5) / scale,
            Coordinates::HalfPixelSymmetric => {
                let offset = input as f64 / 2.0 * (1.0 - output as f64 / width);
                offset + (y + 0.5) / scale - 0.5
            }
        }
    }
}

/// All that says how an axis is sampled.
pub(super) struct Sampling {
    pub(super) kernel: Kernel,
    pub(super) coordinates: Coordinates,
    /// Whether the kernel is widened where the output has fewer elements.
    pub(super) antialias: bool,
    /// Whether elements outside of the input have no weight; else they are those at its border.
    pub(super) exclude_outside: bool,
}

/// One term of the sum for each element of the output.
pub(super) struct Tap {
    /// Elements of the input.
    pub(super) index: Vec<i64>,
    /// Their weights; `None` if all are 1.
    pub(super) weights: Option<Vec<f64>>,
}

/// How an axis is sampled.
pub(super) struct Samples {
    pub(super) taps: Vec<Tap>,
    /// Which elements of the output lie outside of the input, where the coordinates ask for that.
    pub(super) outside: Vec<bool>,
}

impl Sampling {
    /// For an axis of `input` elements, at least 1, made `output`; `region` is what part of the input is sampled.
    pub(super) fn samples(&self, input: i64, output: i64, scale: f64, region: Option<(f64, f64)>) -> Samples {
        let last = (input - 1).max(0);
        let mut places = Vec::new();
        let mut outside = Vec::new();
        for y in 0..output {
            let x = self.coordinates.place(y as f64, (input, output), scale, region.unwrap_or((0.0, 1.0)));
            outside.push(self.coordinates == Coordinates::TfCropAndResize && (x < 0.0 || x > last as f64));
            places.push(if x.is_finite() { x } else { 0.0 });
        }
        if let Kernel::Nearest(nearest) = self.kernel {
            let index = places.iter().map(|x| nearest_to(*x, nearest).clamp(0, last)).collect();
            return Samples { taps: vec![Tap { index, weights: None }], outside };
        }
        // The weights of each element of the output; their number is the same for all.
        let mut rows: Vec<Vec<(i64, f64)>> = Vec::new();
        for x in places {
            let before = x.ceil() - 1.0;
            let (first, mut weights) = self.weights(x - before, scale);
            let index = |k: usize| before as i64 + first + k as i64;
            if self.exclude_outside {
                for (k, w) in weights.iter_mut().enumerate() {
                    if !(0..=last).contains(&index(k)) {
                        *w = 0.0;
                    }
                }
                normalize(&mut weights);
            }
            rows.push(weights.iter().enumerate().map(|(k, w)| (index(k).clamp(0, last), *w)).collect());
        }
        let count = rows.first().map_or(1, Vec::len);
        let mut taps = Vec::new();
        for k in 0..count {
            let column: Vec<(i64, f64)> = rows.iter().map(|row| row[k]).collect();
            if k + 1 < count && column.iter().all(|(_, w)| *w == 0.0) {
                continue;
            }
            let (index, weights) = column.into_iter().unzip();
            taps.push(Tap { index, weights: Some(weights) });
        }
        Samples { taps, outside }
    }

    /// The weights of elements in a row at a place that is `ratio`, above 0 and at most 1, behind an element; the
    /// first of them is so many behind that element.
    fn weights(&self, ratio: f64, scale: f64) -> (i64, Vec<f64>) {
        let scale = if self.antialias { scale.min(1.0) } else { 1.0 };
        let reach = if matches!(self.kernel, Kernel::Cubic(_)) { 2.0 } else { 1.0 };
        let first = (-reach / scale).floor() as i64 + 1;
        let count = 2 - 2 * first;
        let weigh = |i: i64| {
            let distance = (scale * ((first + i) as f64 - ratio)).abs();
            match self.kernel {
                Kernel::Cubic(a) if distance <= 1.0 => ((a + 2.0) * distance - (a + 3.0)) * distance * distance + 1.0,
                Kernel::Cubic(a) if distance < 2.0 => {
                    ((a * distance - 5.0 * a) * distance + 8.0 * a) * distance - 4.0 * a
                }
                Kernel::Cubic(_) => 0.0,
                Kernel::Linear | Kernel::Nearest(_) => (1.0 - distance).clamp(0.0, 1.0),
            }
        };
        let mut weights: Vec<f64> = (0..count).map(weigh).collect();
        if self.antialias {
            normalize(&mut weights);
        }
        (first, weights)
    }
}

fn nearest_to(x: f64, nearest: Nearest) -> i64 {
    let rounded = match nearest {
        Nearest::PreferFloor => (x - 0.5).ceil(),
        Nearest::PreferCeil => (x + 0.5).floor(),
        Nearest::Floor => x.floor(),
        Nearest::Ceil => x.ceil(),
    };
    rounded as i64
}

fn normalize(weights: &mut [f64]) {
    let sum: f64 = weights.iter().sum();
    if sum != 0.0 {
        weights.iter_mut().for_each(|w| *w /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(kernel: Kernel, coordinates: Coordinates) -> Sampling {
        Sampling { kernel, coordinates, antialias: false, exclude_outside: false }
    }

    #[test]
    fn nearest_elements() {
        let of = |mode, coordinates| {
            sampling(Kernel::Nearest(mode), coordinates).samples(2, 4, 2.0, None).taps[0].index.clone()
        };
        assert_eq!(of(Nearest::Floor, Coordinates::Asymmetric), [0, 0, 1, 1]);
        assert_eq!(of(Nearest::Ceil, Coordinates::Asymmetric), [0, 1, 1, 1]);
        assert_eq!(of(Nearest::PreferFloor, Coordinates::HalfPixel), [0, 0, 1, 1]);
        assert_eq!((nearest_to(1.5, Nearest::PreferFloor), nearest_to(1.5, Nearest::PreferCeil)), (1, 2));
    }

    #[test]
    fn weights_sum_to_one() {
        for kernel in [Kernel::Linear, Kernel::Cubic(-0.75)] {
            for (antialias, exclude_outside) in [(false, false), (true, false), (false, true), (true, true)] {
                let sampling = Sampling { antialias, exclude_outside, ..sampling(kernel, Coordinates::HalfPixel) };
                for output in [1, 2, 3, 9] {
                    let samples = sampling.samples(5, output, output as f64 / 5.0, None);
                    for y in 0..output as usize {
                        let sum: f64 = samples.taps.iter().map(|t| t.weights.as_ref().unwrap()[y]).sum();
                        assert!((sum - 1.0).abs() < 1e-12, "{kernel:?} {antialias} {output}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_lies_outside() {
        let samples = sampling(Kernel::Linear, Coordinates::TfCropAndResize).samples(4, 3, 0.75, Some((0.5, 1.5)));
        assert_eq!(samples.outside, [false, false, true]);
    }
}
