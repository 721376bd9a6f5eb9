/** A part of the panel with a heading that opens and closes it. */
import * as React from 'react';

import { describeKind } from '../format';
import { IHost, ITexts } from '../host';
import { Caret } from '../icons';
import { Kind } from '../messages';

export function Section(props: {
  title: string;
  /** How many things are in it; none if that says nothing. */
  count?: number;
  children: React.ReactNode;
}): JSX.Element {
  const [isOpen, setOpen] = React.useState(true);
  const id = React.useId();
  return (
    <section className="jp-mcp-section" aria-labelledby={id}>
      <h3 className="jp-mcp-heading" id={id}>
        <button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Caret isOpen={isOpen} />
          <span>{props.title}</span>
          {props.count !== undefined && <span className="jp-mcp-count">{props.count}</span>}
        </button>
      </h3>
      {isOpen && <div className="jp-mcp-body">{props.children}</div>}
    </section>
  );
}

/** What a declaration or a call is of, unless it is of a tool. */
export function KindBadge(props: { trans: ITexts; kind: Kind }): JSX.Element | null {
  const { trans, kind } = props;
  return kind === 'tool' ? null : <span className="jp-mcp-badge">{describeKind(trans, kind)}</span>;
}

/** A small button with an icon, or with a word. */
export function SmallButton(props: {
  label: string;
  title?: string;
  kind?: 'accept' | 'warn';
  disabled?: boolean;
  /** Whether it will react, but does not yet; it keeps the focus. */
  waits?: boolean;
  /** Whether what it opens and closes is open. */
  expanded?: boolean;
  onClick: () => void;
  children?: React.ReactNode;
}): JSX.Element {
  const kind = props.kind ? ` jp-mcp-button-${props.kind}` : '';
  return (
    <button
      className={`jp-mcp-button${kind}`}
      aria-label={props.label}
      title={props.title ?? props.label}
      disabled={props.disabled}
      aria-disabled={props.waits || undefined}
      aria-expanded={props.expanded}
      onClick={props.onClick}
    >
      {props.children ?? props.label}
    </button>
  );
}

/** A text with a button that copies it. */
export function Copyable(props: {
  host: IHost;
  text: string;
  /** What the button is called, and what it shows. */
  label: string;
  copy: string;
  onCopied: () => void;
}): JSX.Element {
  return (
    <div className="jp-mcp-copyable">
      <code title={props.text}>{props.text}</code>
      <SmallButton
        label={props.label}
        onClick={() => {
          props.host.copy(props.text);
          props.onCopied();
        }}
      >
        {props.copy}
      </SmallButton>
    </div>
  );
}

/** Lines with a button that copies them. */
export function CopyBlock(props: {
  host: IHost;
  text: string;
  /** What is copied, if that is not what is shown. */
  copied?: string;
  copy: string;
  onCopied: () => void;
}): JSX.Element {
  return (
    <div className="jp-mcp-lines">
      <pre tabIndex={0}>{props.text}</pre>
      <SmallButton
        label={props.copy}
        onClick={() => {
          props.host.copy(props.copied ?? props.text);
          props.onCopied();
        }}
      />
    </div>
  );
}
