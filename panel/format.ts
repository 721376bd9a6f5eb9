/** Times and counts as people read them. */

import { ITexts } from './host';
import { IEndedCall, INotebookState, ITool, Kind } from './messages';

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

/** Return a time of day as `%mcp log` does, with the date if it was another day. */
export function formatTime(seconds: number, timeStyle: 'medium' | 'short' = 'medium'): string {
  const date = new Date(seconds * 1000);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString(undefined, { timeStyle, hourCycle: 'h23' });
  return isToday ? time : `${date.toLocaleDateString()} ${time}`;
}

/** Return how many tools there are, and how many prompts, resources and skills, if any. */
export function countTools(trans: ITexts, tools: ITool[]): string {
  const count = (kind: Kind) => tools.filter(tool => tool.kind === kind).length;
  const parts = [
    count('tool') || !tools.length ? trans._n('%1 tool', '%1 tools', count('tool')) : '',
    count('prompt') ? trans._n('%1 prompt', '%1 prompts', count('prompt')) : '',
    count('resource') ? trans._n('%1 resource', '%1 resources', count('resource')) : '',
    count('skill') ? trans._n('%1 skill', '%1 skills', count('skill')) : ''
  ];
  return parts.filter(Boolean).join(', ');
}

/** Return what status bars say of a notebook: its tools, its client, its questions, and a call. */
export function describeNotebook(
  trans: ITexts,
  notebook: INotebookState,
  questions: number,
  now: number
): string {
  const [client] = notebook.clients;
  const [call] = notebook.open_calls;
  const parts = [
    countTools(trans, notebook.tools),
    client ? client.name : '',
    questions ? trans._n('%1 question', '%1 questions', questions) : '',
    call ? `${call.tool} ${formatClock(now - (call.began ?? call.came))}` : ''
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Return what is between backticks, which the kernel writes around addresses. */
export function stripBackticks(text: string): string {
  return text.replace(/`/g, '');
}

/** Return what a tool does to the world, as its author declared it; empty if nothing is said. */
export function describeEffect(trans: ITexts, tool: ITool): string {
  switch (tool.effect) {
    case 'read-only':
      return trans.__('read-only');
    case 'destructive':
      return trans.__('destructive');
    default:
      return '';
  }
}

/** Return what a declaration is, in a word. */
export function describeKind(trans: ITexts, kind: Kind): string {
  switch (kind) {
    case 'prompt':
      return trans.__('prompt');
    case 'resource':
      return trans.__('resource');
    case 'skill':
      return trans.__('skill');
    default:
      return trans.__('tool');
  }
}

/** Return in a word why a notebook's kernel cannot tell what there is to see. */
export function describeTrouble(trans: ITexts, notebook: INotebookState): string {
  switch (notebook.trouble_kind) {
    case 'old':
      return trans.__('too old');
    case 'version':
      return trans.__('another version');
    case 'restarting':
      return trans.__('restarting');
    default:
      return trans.__('no answer');
  }
}

/** Return how a call ended. */
export function describeState(trans: ITexts, call: IEndedCall): string {
  switch (call.state) {
    case 'done':
      return formatSeconds(call.seconds);
    case 'failed':
      return trans.__('failed');
    case 'cancelled':
    case 'stopped':
      return trans.__('stopped');
    case 'timed out':
      return trans.__('timed out');
    case 'lost':
      return trans.__('lost');
    default:
      return call.state;
  }
}
