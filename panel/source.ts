/**
 * Sources as they are: in lines, with a box for each character that people do not see or take for
 * another one; and what two sources differ in.
 */

/** A part of a line in one style; `box` has the code point of a character that is not shown. */
export interface IPiece {
  text: string;
  style?: string;
  box?: string;
}

/** A line of a comparison; `number` counts the lines of the new source. */
export interface IShownLine {
  sign: ' ' | '+' | '-';
  number?: number;
  pieces: IPiece[];
}

/** Format, control and private characters, unusual spaces, half of a pair, and fillers. */
const UNSEEN =
  /(?![ \n\t])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/u;
/** Strings and comments of Python, and words. */
const TOKENS =
  /(?<![\p{L}\p{N}_])([a-z]{0,2})(?:("""|''')(?:\\[^]|(?!\2)[^\\])*\2|(["'])(?:\\[^]|(?!\3)[^\\\n\r])*\3)|#[^\n\r]*|[\p{L}\p{M}\p{N}_]+/giu;
const WORDS = /[\p{L}\p{M}\p{N}_]+/gu;
const OTHER_ALPHABET = /(?!\p{Script=Latin})\p{L}/u;
const NOT_ASCII = /[^\0-\x7f]/u;

/**
 * Return where the letters are that may be taken for others.
 *
 * In a name and in an f-string, these are all letters outside ASCII. In other strings, in comments
 * and in Markdown, they are those of another alphabet in a word with Latin letters.
 */
function findMisleading(source: string, isCode: boolean): Set<number> {
  const found = new Set<number>();
  const mark = (text: string, start: number, isName: boolean) => {
    for (const { 0: word, index = 0 } of text.matchAll(WORDS)) {
      let at = start + index;
      const what = isName ? NOT_ASCII : /[a-z]/i.test(word) ? OTHER_ALPHABET : undefined;
      for (const char of what ? word : '') {
        if (what?.test(char)) {
          found.add(at);
        }
        at += char.length;
      }
    }
  };
  if (!isCode) {
    mark(source, 0, false);
    return found;
  }
  for (const { 0: token, 1: prefix, 2: long, 3: short, index = 0 } of source.matchAll(TOKENS)) {
    const isText = token[0] === '#' || long || short;
    mark(token, index, !isText || /[ft]/i.test(prefix ?? ''));
  }
  return found;
}

/** Return a source in lines; a `\r` ends one, as it does in Python. */
export function splitSource(source: string, pieces: IPiece[], isCode: boolean): IPiece[][] {
  const misleading = findMisleading(source, isCode);
  let line: IPiece[] = [];
  const lines = [line];
  let at = 0;
  for (const { text, style } of pieces) {
    for (const char of text) {
      const isBoxed = misleading.has(at) || UNSEEN.test(char);
      const last = line[line.length - 1];
      at += char.length;
      if (char === '\n') {
        lines.push((line = []));
      } else if (isBoxed) {
        const code = (char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
        line.push({ text: char, style, box: `U+${code}` });
        if (char === '\r' && source[at] !== '\n') {
          lines.push((line = []));
        }
      } else if (last && !last.box && last.style === style) {
        last.text += char;
      } else {
        line.push({ text: char, style });
      }
    }
  }
  return lines;
}

/** Steps of a comparison beyond which all lines count as changed. */
const MOST_STEPS = 4_000_000;

/** Return what is to be shown of a source, compared with the one before if there is one. */
export function compare(before: IPiece[][] | undefined, after: IPiece[][]): IShownLine[] {
  const read = (line: IPiece[]) => line.map(piece => piece.text).join('');
  const old = before?.map(read) ?? [];
  const now = after.map(read);
  const keep = (index: number): IShownLine => ({
    sign: ' ',
    number: index + 1,
    pieces: after[index]
  });
  if (!before) {
    return after.map((_, index) => keep(index));
  }
  let start = 0;
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) {
    start++;
  }
  let end = 0;
  while (
    end < Math.min(old.length, now.length) - start &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  ) {
    end++;
  }
  // common[i][j]: how many lines the rests have in common, from old line i and new line j on.
  const rows = old.length - start - end;
  const columns = now.length - start - end;
  const isLong = rows * columns > MOST_STEPS;
  const common = Array.from({ length: rows + 1 }, () => new Uint32Array(isLong ? 0 : columns + 1));
  for (let i = isLong ? -1 : rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      common[i][j] =
        old[start + i] === now[start + j]
          ? common[i + 1][j + 1] + 1
          : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const shown = now.slice(0, start).map((_, index) => keep(index));
  let i = 0;
  let j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && !isLong && old[start + i] === now[start + j]) {
      shown.push(keep(start + j));
      i++;
      j++;
    } else if (i < rows && (j === columns || isLong || common[i + 1][j] >= common[i][j + 1])) {
      shown.push({ sign: '-', pieces: before[start + i] });
      i++;
    } else {
      shown.push({ sign: '+', number: start + j + 1, pieces: after[start + j] });
      j++;
    }
  }
  return [...shown, ...now.slice(now.length - end).map((_, k) => keep(now.length - end + k))];
}
