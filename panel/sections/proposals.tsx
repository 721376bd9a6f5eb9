/** The cells that clients propose: as they would be inserted, with what hides in them. */
import * as React from 'react';

import { IProposal } from '../messages';
import { formatClock, formatTime } from '../format';
import { IPanelContext, ISectionProps, useClock, useSettled } from '../hooks';
import { IProposalHost, accept } from '../proposals';
import { IPiece, compare, splitSource } from '../source';
import { SmallButton } from './section';

export interface IProposalProps extends IPanelContext {
  kernel: string;
  host: IProposalHost;
  proposal: IProposal;
  /** Move the focus, since the proposal goes. */
  onAnswered: () => void;
  children?: React.ReactNode;
}

/** A proposal with its buttons. They react once all of it has been in view where it is. */
export function Proposal(props: IProposalProps): JSX.Element {
  const { store, trans, kernel, host, proposal } = props;
  const now = useClock(true);
  const node = React.useRef<HTMLDivElement>(null);
  const [isEditing, setEditing] = React.useState(false);
  const [isAnswered, setAnswered] = React.useState(false);
  const [word, setWord] = React.useState('');
  /** Why it is still here. */
  const [outcome, setOutcome] = React.useState('');
  const place = host.find(proposal);
  const source = store.drafts.get(proposal.digest) ?? proposal.source;
  const content = JSON.stringify([place, source, isEditing]);
  const [isSettled, checkSettled] = useSettled(node, content);
  const [seen, setSeen] = React.useState('');
  const isSeen = seen === content;
  const look = trans.__('First look at the source, down to its end.');
  const isOff = isAnswered || proposal.state === 'taken';
  const answer = (act: () => Promise<unknown>) => {
    // The click may be meant for what was here a moment ago.
    if (checkSettled() && !isOff) {
      setAnswered(true);
      props.onAnswered();
      void act().then(() => {
        setAnswered(false);
        setOutcome(store.note);
      });
    }
  };
  const button = (label: string, kind: 'accept' | undefined, run: boolean) => (
    <SmallButton
      kind={kind}
      label={label}
      title={isSeen ? label : look}
      disabled={isOff}
      waits={!isSettled || !isSeen}
      onClick={() =>
        isSeen && answer(() => accept(props, kernel, host, { proposal, place, source, run }))
      }
    />
  );
  const reject = () =>
    answer(() => store.act(kernel, { action: 'reject', proposal: proposal.number, word }));
  return (
    <div
      className="jp-mcp-question jp-mcp-proposal"
      role="group"
      aria-label={describeProposal(props)}
      ref={node}
    >
      <div className="jp-mcp-row jp-mcp-wrap">
        <strong className="jp-mcp-main">{describeProposal(props)}</strong>
        {source !== proposal.source && (
          <span className="jp-mcp-badge">{trans.__('edited by you')}</span>
        )}
        <span className="jp-mcp-side">{formatTime(proposal.asked, 'short')}</span>
        {props.children}
      </div>
      <div className="jp-mcp-reason">{proposal.reason}</div>
      {place.isGone && (
        <div className="jp-mcp-error">
          {trans.__('The cell that it is for is gone: it would stand at the end of the notebook.')}
        </div>
      )}
      {place.source !== undefined && proposal.base && place.source !== proposal.base && (
        <div className="jp-mcp-error">
          {trans.__('The cell has been edited since it ran: compare with care.')}
        </div>
      )}
      {proposal.warnings.length > 0 && (
        <ul className="jp-mcp-warnings jp-mcp-error" aria-label={trans.__('Warnings')}>
          {proposal.warnings.map((warning, index) => (
            <li key={index}>{warning}</li>
          ))}
        </ul>
      )}
      {isEditing ? (
        <Editor {...props} source={source} />
      ) : (
        <Source
          key={content}
          label={
            place.source === undefined ? trans.__('Source') : trans.__('Difference, line by line')
          }
          host={host}
          kind={proposal.kind}
          source={source}
          before={place.source}
          onSeen={() => setSeen(content)}
        />
      )}
      <div role="status">{outcome}</div>
      {isEditing ? (
        <div className="jp-mcp-buttons">
          <SmallButton label={trans.__('Done')} onClick={() => setEditing(false)} />
          <SmallButton
            label={trans.__('Take back my changes')}
            onClick={() => {
              store.setDraft(proposal, undefined);
              setEditing(false);
            }}
          />
        </div>
      ) : (
        <div className="jp-mcp-buttons">
          {proposal.kind !== 'markdown' && button(trans.__('Accept and run'), 'accept', true)}
          {button(trans.__('Accept'), proposal.kind === 'markdown' ? 'accept' : undefined, false)}
          <SmallButton
            label={trans.__('Edit')}
            disabled={isOff}
            waits={!isSettled}
            onClick={() => setEditing(true)}
          />
          <SmallButton
            kind="warn"
            label={trans.__('Reject')}
            disabled={isOff}
            waits={!isSettled}
            onClick={reject}
          />
          <input
            className="jp-mcp-word-of-reason jp-mod-styled"
            aria-label={trans.__('Why it is rejected')}
            placeholder={trans.__('Why not?')}
            value={word}
            onChange={event => setWord(event.target.value)}
            onKeyDown={({ key, nativeEvent }) =>
              // While a word is composed, the key chooses its characters.
              key === 'Enter' && !nativeEvent.isComposing && reject()
            }
          />
          <span className="jp-mcp-side">
            {!isSeen && `${look} `}
            {proposal.state === 'taken'
              ? trans.__('being inserted')
              : proposal.ends > 0 &&
                trans.__('%1 left to answer', formatClock(proposal.ends - now))}
          </span>
        </div>
      )}
    </div>
  );
}

/** Return who proposes what. */
export function describeProposal({
  trans,
  proposal
}: Pick<IProposalProps, 'trans' | 'proposal'>): string {
  const { client, kind, tool, replaces } = proposal;
  if (replaces) {
    return trans.__('%1 proposes a new version of %2', client, tool);
  }
  switch (kind) {
    case 'tool':
      return trans.__('%1 proposes a tool', client);
    case 'markdown':
      return trans.__('%1 proposes a text', client);
    default:
      return trans.__('%1 proposes a cell', client);
  }
}

/** The user's own version, in an editor of the application. */
function Editor(props: IProposalProps & { source: string }): JSX.Element {
  const node = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    const { host, proposal, source, store } = props;
    const editor = host.edit(node.current!, source, proposal.kind, changed =>
      store.setDraft(proposal, changed)
    );
    editor.focus();
    return () => editor.dispose();
  }, [props.host, props.proposal.digest]);
  return <div className="jp-mcp-editor" ref={node} />;
}

interface ISourceProps {
  label: string;
  host: IProposalHost;
  kind: IProposal['kind'];
  source: string;
  /** What it replaces. */
  before?: string;
  /** Called when its end is in view. */
  onSeen: () => void;
}

/** A source, or its difference to what it replaces. It never changes: others have another key. */
const Source = React.memo((props: ISourceProps): JSX.Element => {
  const { host, kind, source, before } = props;
  const end = React.useRef<HTMLDivElement>(null);
  const now = useColoured(host, kind, source);
  const old = useColoured(host, kind, before);
  const lines = React.useMemo(() => compare(old, now ?? []), [old, now]);
  React.useEffect(() => {
    const observer = new IntersectionObserver(entries => {
      if (entries.some(entry => entry.isIntersecting)) {
        props.onSeen();
      }
    });
    observer.observe(end.current!);
    return () => observer.disconnect();
  }, []);
  return (
    <div className="jp-mcp-source" tabIndex={0} role="region" aria-label={props.label}>
      {lines.map(({ sign, number, pieces }, index) => (
        <div key={index} className="jp-mcp-source-line" data-sign={sign} data-number={number}>
          {pieces.map(({ text, style, box }, at) =>
            box ? (
              <span key={at} className="jp-mcp-box" title={box}>
                {/\p{L}/u.test(text) ? `${text} ${box}` : box}
              </span>
            ) : (
              <span key={at} className={style}>
                {text}
              </span>
            )
          )}
        </div>
      ))}
      <div className="jp-mcp-end" ref={end} />
    </div>
  );
}, () => true);

/** Return a source in lines, at first without colors. */
function useColoured(
  host: IProposalHost,
  kind: IProposal['kind'],
  source: string | undefined
): IPiece[][] | undefined {
  const split = (pieces: IPiece[]) =>
    source === undefined ? undefined : splitSource(source, pieces, kind !== 'markdown');
  const [lines, setLines] = React.useState(() => split([{ text: source ?? '' }]));
  React.useEffect(() => {
    let isGone = false;
    if (source) {
      void host.colour(source, kind).then(pieces => isGone || setLines(split(pieces)));
    }
    return () => {
      isGone = true;
    };
  }, []);
  return lines;
}

/** Whether clients may propose cells, and what they get with that. */
export function ProposalSwitch({ store, trans, kernel, notebook }: ISectionProps): JSX.Element | null {
  const id = React.useId();
  if (typeof notebook.proposes !== 'boolean') {
    return null;
  }
  const label = trans.__('Clients may propose cells');
  return (
    <div className="jp-mcp-proposes">
      <label className="jp-mcp-row">
        <span className="jp-mcp-main">{label}</span>
        <input
          type="checkbox"
          role="switch"
          checked={notebook.proposes}
          aria-describedby={id}
          onChange={event =>
            void store.act(kernel, { action: 'propose', on: event.target.checked })
          }
        />
      </label>
      <div className="jp-mcp-small" id={id}>
        {trans.__(
          'You decide on each of them. Clients then also read the sources of all cells, and the names and types of variables.'
        )}
      </div>
    </div>
  );
}
