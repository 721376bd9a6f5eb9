/** The panel's texts, in English: what takes the place of JupyterLab's translations. */
import { ITexts } from '../../panel/host';

function fill(text: string, values: unknown[]): string {
  // Only once: a value may have a `%1` of its own.
  return text.replace(/%(\d)/g, (found, index) => String(values[index - 1] ?? found));
}

export const TEXTS: ITexts = {
  __: (text, ...values) => fill(text, values),
  _n: (one, many, number, ...values) => fill(number === 1 ? one : many, [number, ...values])
};
