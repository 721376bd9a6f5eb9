/** Times and counts as people read them. */
import { TranslationBundle } from '@jupyterlab/translation';

/** Return a duration with a unit that suits it. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, seconds);
  if (whole < 1) {
    return `${Math.round(whole * 1000)} ms`;
  }
  if (whole < 60) {
    return `${whole.toFixed(1)} s`;
  }
  return formatClock(whole);
}

/** Return a duration that goes on: `12 s`, `3:05`, `1:02:09`. */
export function formatClock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) {
    return `${whole} s`;
  }
  const pad = (value: number) => String(value).padStart(2, '0');
  const minutes = Math.floor(whole / 60);
  return minutes < 60
    ? `${minutes}:${pad(whole % 60)}`
    : `${Math.floor(minutes / 60)}:${pad(minutes % 60)}:${pad(whole % 60)}`;
}

/** Return a time of day, with the date if it was another day. */
export function formatTime(seconds: number): string {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}

export function countTools(trans: TranslationBundle, number: number): string {
  return trans._n('%1 tool', '%1 tools', number);
}

/** Return what is between backticks, which the kernel writes around addresses. */
export function stripBackticks(text: string): string {
  return text.replace(/`/g, '');
}
