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
    /// Before version 11: the one behind where the output is smaller, else the one before.
    Simple,
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

    /// The place in an input of `input` elements of place `y` of `output`, each step rounded by `r`.
    fn place(
        self,
        y: f64,
        (input, output): (i64, i64),
        scale: f64,
        (start, end): (f64, f64),
        r: fn(f64) -> f64,
    ) -> f64 {
        let width = r(scale * input as f64);
        let last = input as f64 - 1.0;
        let half_pixel = || r(r(y + 0.5) / scale);
        match self {
            Coordinates::AlignCorners if width == 1.0 => 0.0,
            Coordinates::AlignCorners => r(r(y * last) / r(width - 1.0)),
            Coordinates::Asymmetric => r(y / scale),
            Coordinates::TfCropAndResize => {
                let size = r(end - start);
                let within =
                    if width == 1.0 { r(r(size * last) / 2.0) } else { r(r(r(y * size) * last) / r(width - 1.0)) };
                r(within + r(start * last))
            }
            Coordinates::PytorchHalfPixel if width == 1.0 => -0.5,
            Coordinates::PytorchHalfPixel | Coordinates::HalfPixel => r(half_pixel() - 0.5),
            Coordinates::TfHalfPixelForNn => half_pixel(),
            Coordinates::HalfPixelSymmetric => {
                let offset = r(input as f64 / 2.0 * r(1.0 - r(output as f64 / width)));
                r(r(offset + half_pixel()) - 0.5)
            }
        }
    }
}

/// The precision of places. Scales are in single precision: the element before or behind a place is that which single
/// precision tells, where the place lies on an element but for rounding.
fn rounding(kernel: Kernel) -> fn(f64) -> f64 {
    if matches!(kernel, Kernel::Nearest(_)) { |v| f64::from(v as f32) } else { |v| v }
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
        let r = rounding(self.kernel);
        let scale = r(scale);
        let mut places = Vec::new();
        let mut outside = Vec::new();
        for y in 0..output {
            let x = self.coordinates.place(y as f64, (input, output), scale, region.unwrap_or((0.0, 1.0)), r);
            outside.push(self.coordinates == Coordinates::TfCropAndResize && (x < 0.0 || x > last as f64));
            places.push(if x.is_finite() { x } else { 0.0 });
        }
        if let Kernel::Nearest(nearest) = self.kernel {
            let nearest = match nearest {
                Nearest::Simple if scale < 1.0 => Nearest::Ceil,
                Nearest::Simple => Nearest::Floor,
                other => other,
            };
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
        Nearest::Floor | Nearest::Simple => x.floor(),
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
    fn scales_of_single_precision() {
        let of = |mode, scale: f32, (input, output)| {
            let sampling = sampling(Kernel::Nearest(mode), Coordinates::Asymmetric);
            sampling.samples(input, output, f64::from(scale), None).taps[0].index.clone()
        };
        // 3 / 0.6 is 5 elements, not a bit less.
        assert_eq!(of(Nearest::Floor, 0.6, (10, 6)), [0, 1, 3, 5, 6, 8]);
        assert_eq!(of(Nearest::Simple, 0.8, (5, 4)), [0, 2, 3, 4]);
        assert_eq!(of(Nearest::Simple, 1.4, (5, 7)), [0, 0, 1, 2, 2, 3, 4]);
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
