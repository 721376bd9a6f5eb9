/**
 * The proposals of a notebook: as they would be inserted, with what hides in them. Once the user
 * has accepted one, the page claims it at the kernel, inserts the cell and tells what became of it.
 */
import { Decoration, EditorView, MatchDecorator } from '@codemirror/view';
import { Prec } from '@codemirror/state';
import { unifiedMergeView } from '@codemirror/merge';
import { Cell, ICodeCellModel } from '@jupyterlab/cells';
import { CodeEditor, IEditorFactoryService } from '@jupyterlab/codeeditor';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';
import * as React from 'react';

import { formatClock, formatTime } from '../../panel/format';
import { IPanelContext, useClock, useSettled } from '../../panel/hooks';
import { INotebookState, IProposal } from '../../panel/messages';
import { describeProposal } from '../../panel/sections/proposals';
import { SmallButton } from '../../panel/sections/section';
import { reveal } from './reveal';

/** The key of our entries in the metadata of cells. */
export const KEY = 'mcp_notebook';
const MIMES = { code: 'text/x-ipython', tool: 'text/x-ipython', markdown: 'text/x-ipythongfm' };

/** A notebook that is open, and what its proposals need. */
export interface IProposalContext extends IPanelContext {
  panel: NotebookPanel;
  editors: IEditorFactoryService;
}

type IPlace = ReturnType<typeof findPlace>;

/** What a cell's metadata tell of a proposal that was accepted, as far as pages read it. */
interface IOrigin {
  client: string;
  date: string;
  edited: boolean;
  number: number;
  /** The record of the kernel to which `number` belongs. */
  kernel: string;
}

/** Return what a cell's metadata, which may be anything, tell of a proposal. */
export function readOrigin(cell: Cell): IOrigin | undefined {
  const entry = cell.model.getMetadata(KEY)?.proposed;
  return typeof entry?.client === 'string' && typeof entry.date === 'string' ? entry : undefined;
}

/** Return the id of a notebook's kernel, and what is known of it. */
export function findNotebook({ panel, store }: IProposalContext): [string, INotebookState?] {
  const kernel = panel.sessionContext.session?.kernel?.id ?? '';
  return [kernel, store.notebooks.get(kernel)];
}

/** Return where a proposal stands in a notebook as it is now. */
export function findPlace(panel: NotebookPanel, { replaces, after }: IProposal) {
  const cells = panel.content.widgets;
  const named = cells.find(cell => cell.model.id === (replaces ?? after));
  return {
    /** The cell at which it is shown; none in an empty notebook. */
    cell: named ?? (cells[cells.length - 1] as Cell | undefined),
    /** What that cell holds, if the proposal would replace it. */
    source: named && replaces ? named.model.sharedModel.getSource() : undefined,
    /** Whether the cell that the proposal names is gone: it would stand at the end. */
    isGone: !named && Boolean(replaces ?? after)
  };
}

/** Return the open proposals of a notebook, or those at one of its cells. */
export function drawProposals(context: IProposalContext, cell?: Cell): JSX.Element[] {
  const [kernel, notebook] = findNotebook(context);
  return (notebook?.proposals ?? [])
    .filter(proposal => !cell || cell === findPlace(context.panel, proposal).cell)
    .map(proposal => (
      <Proposal
        {...context}
        key={`${notebook?.kernel} ${proposal.number}`}
        kernel={kernel}
        proposal={proposal}
        isInPanel={!cell}
      />
    ));
}

interface IProposalProps extends IProposalContext {
  kernel: string;
  proposal: IProposal;
  isInPanel: boolean;
}

/** A proposal with its buttons. They react once all of it has been in view where it is. */
function Proposal(props: IProposalProps): JSX.Element {
  const { store, trans, kernel, panel, proposal } = props;
  const now = useClock(true);
  const node = React.useRef<HTMLDivElement>(null);
  const [isEditing, setEditing] = React.useState(false);
  const [isAnswered, setAnswered] = React.useState(false);
  const [word, setWord] = React.useState('');
  /** Why it is still here. */
  const [outcome, setOutcome] = React.useState('');
  const place = findPlace(panel, proposal);
  const source = store.drafts.get(proposal.digest) ?? proposal.source;
  const content = JSON.stringify([place.source, place.isGone, source, isEditing]);
  const [isSettled, checkSettled] = useSettled(node, content);
  const [seen, setSeen] = React.useState('');
  const isSeen = seen === content;
  const isEdited = place.source !== undefined && proposal.base && place.source !== proposal.base;
  const warnings = [
    place.isGone &&
      trans.__('The cell that it is for is gone: it would stand at the end of the notebook.'),
    isEdited && trans.__('The cell has been edited since it ran: compare with care.'),
    ...proposal.warnings
  ].filter(Boolean);
  const answer = (act: () => Promise<unknown>) => {
    // The click may be meant for what was here a moment ago.
    if (checkSettled()) {
      setAnswered(true);
      // The proposal goes, and the focus stays in the panel, or at the cell.
      node.current?.parentElement?.closest<HTMLElement>('[tabindex]')?.focus();
      void act().then(() => {
        setAnswered(false);
        setOutcome(store.note);
      });
    }
  };
  const reject = () => store.act(kernel, { action: 'reject', proposal: proposal.number, word });
  const acceptButton = (label: string, run: boolean, kind?: 'accept') => (
    <SmallButton
      kind={kind}
      label={label}
      waits={!isSettled || !isSeen}
      onClick={() => isSeen && answer(() => accept(props, place, source, run))}
    />
  );
  const isText = proposal.kind === 'markdown';
  return (
    <div
      className="jp-mcp-question jp-mcp-proposal"
      role="group"
      aria-label={describeProposal(trans, proposal)}
      ref={node}
    >
      <div className="jp-mcp-row jp-mcp-wrap">
        <strong className="jp-mcp-main">{describeProposal(trans, proposal)}</strong>
        {source !== proposal.source && (
          <span className="jp-mcp-badge">{trans.__('edited by you')}</span>
        )}
        <span className="jp-mcp-side">{formatTime(proposal.asked, 'short')}</span>
        {props.isInPanel && place.cell && (
          <SmallButton
            label={trans.__('Show in the notebook')}
            onClick={() => void props.actions.showCell(place.cell!.model.id)}
          />
        )}
      </div>
      <div className="jp-mcp-reason">{proposal.reason}</div>
      {warnings.length > 0 && (
        <ul className="jp-mcp-warnings jp-mcp-error" aria-label={trans.__('Warnings')}>
          {warnings.map((warning, index) => (
            <li key={index}>{warning}</li>
          ))}
        </ul>
      )}
      <Source
        {...props}
        key={isEditing ? '' : content}
        source={source}
        before={place.source}
        isEditing={isEditing}
        onSeen={() => setSeen(content)}
      />
      <div role="status">{outcome}</div>
      {isEditing ? (
        <div className="jp-mcp-buttons">
          <SmallButton label={trans.__('Done')} onClick={() => setEditing(false)} />
          <SmallButton
            label={trans.__('Take back my changes')}
            onClick={() => {
              store.setDraft(proposal, proposal.source);
              setEditing(false);
            }}
          />
        </div>
      ) : (
        <fieldset className="jp-mcp-buttons" disabled={isAnswered || proposal.state === 'taken'}>
          {!isText && acceptButton(trans.__('Accept and run'), true, 'accept')}
          {acceptButton(trans.__('Accept'), false, isText ? 'accept' : undefined)}
          <SmallButton label={trans.__('Edit')} onClick={() => setEditing(true)} />
          <SmallButton
            kind="warn"
            label={trans.__('Reject')}
            waits={!isSettled}
            onClick={() => answer(reject)}
          />
          <input
            className="jp-mcp-word-of-reason jp-mod-styled"
            aria-label={trans.__('Why it is rejected')}
            placeholder={trans.__('Why not?')}
            value={word}
            onChange={event => setWord(event.target.value)}
            onKeyDown={({ key, nativeEvent }) =>
              // While a word is composed, the key chooses its characters.
              key === 'Enter' && !nativeEvent.isComposing && answer(reject)
            }
          />
          <span className="jp-mcp-side">
            {!isSeen && `${trans.__('First look at the source, down to its end.')} `}
            {proposal.ends > 0 &&
              trans.__('%1 left to answer', formatClock(proposal.ends - now))}
          </span>
        </fieldset>
      )}
    </div>
  );
}

interface ISourceProps extends IProposalProps {
  source: string;
  /** What it replaces. */
  before?: string;
  isEditing: boolean;
  /** Called when its end is in view. */
  onSeen: () => void;
}

/** Marks what `reveal` has put into a source. */
const REVEALED = new MatchDecorator({
  regexp: /⟦[^⟧]*⟧/g,
  decoration: Decoration.mark({ class: 'jp-mcp-box' })
});

/** A source, or its difference to what it replaces, to be read or edited; another has another key. */
function Source(props: ISourceProps): JSX.Element {
  const { trans, proposal, source, before, isEditing } = props;
  const node = React.useRef<HTMLDivElement>(null);
  const end = React.useRef<HTMLDivElement>(null);
  const label = before === undefined ? trans.__('Source') : trans.__('Difference, line by line');
  React.useEffect(() => {
    const show = (text: string) => (isEditing ? text : reveal(text, proposal.kind !== 'markdown'));
    const model = new CodeEditor.Model({ mimeType: MIMES[proposal.kind] });
    model.sharedModel.setSource(show(source));
    const editor = props.editors.newInlineEditor({
      host: node.current!,
      model,
      config: { lineNumbers: true, lineWrap: true, readOnly: !isEditing, tabFocusable: isEditing },
      extensions: [
        EditorView.editable.of(isEditing),
        EditorView.contentAttributes.of({ 'aria-label': label }),
        Prec.lowest(EditorView.decorations.of(view => REVEALED.createDeco(view))),
        before === undefined
          ? []
          : unifiedMergeView({ original: show(before), mergeControls: false, gutter: false })
      ]
    });
    if (isEditing) {
      model.sharedModel.changed.connect(text => props.store.setDraft(proposal, text.getSource()));
      editor.focus();
    }
    const observer = new IntersectionObserver(
      entries => entries.some(entry => entry.isIntersecting) && props.onSeen()
    );
    observer.observe(end.current!);
    return () => {
      observer.disconnect();
      editor.dispose();
    };
  }, []);
  return (
    <div
      className="jp-mcp-source"
      role="region"
      aria-label={label}
      tabIndex={isEditing ? -1 : 0}
      // The editor's keys would change a text that is there to be read.
      onKeyDownCapture={event => isEditing || event.stopPropagation()}
    >
      <div ref={node} />
      <div className="jp-mcp-end" ref={end} />
    </div>
  );
}

/** Put a proposal into the notebook, if the kernel and the notebook have it as it was shown. */
async function accept(
  { store, trans, kernel, panel, proposal }: IProposalProps,
  shown: IPlace,
  source: string,
  run: boolean
): Promise<void> {
  const { number, digest, client } = proposal;
  const edited = source !== proposal.source;
  const settle = (outcome: 'inserted' | 'ran' | 'stale', more: object) =>
    store.act(kernel, { action: 'settle', proposal: number, outcome, ...more });
  const take = { proposal: number, digest, run, source: edited ? source : undefined };
  if (!(await store.act(kernel, { action: 'take', ...take }))) {
    return;
  }
  const record = store.notebooks.get(kernel)?.kernel ?? '';
  // A page that took it before may have gone just after it had inserted the cell.
  let cell = panel.content.widgets.find(each => {
    const origin = readOrigin(each);
    return origin?.kernel === record && origin.number === number;
  });
  let replaced: string | undefined;
  if (!cell) {
    // Meanwhile, the user or another one may have been there.
    const place = findPlace(panel, proposal);
    if (place.isGone !== shown.isGone || place.source !== shown.source) {
      const message = place.isGone
        ? trans.__('The cell that the proposal is for was deleted.')
        : trans.__('The cell that the proposal is for was edited.');
      await settle('stale', { message });
      store.setNote(message);
      return;
    }
    const date = new Date().toISOString();
    const proposed = { client, date, digest, edited, number, kernel: record };
    replaced = place.source; // not always what the kernel has run
    cell = insert(panel, proposal, place, source, { proposed });
  }
  const { model } = cell;
  store.drafts.delete(digest);
  if (await settle('inserted', { cell: model.id, replaced })) {
    store.setNote(trans.__('The cell that %1 proposed is in the notebook.', client));
    if (run) {
      await NotebookActions.runCells(panel.content, [cell], panel.sessionContext);
      await settle('ran', { cell: model.id, outputs: (model as ICodeCellModel).outputs.toJSON() });
      store.setNote(trans.__('The cell that %1 proposed has run.', client));
    }
  }
}

/** Put a source where a proposal stands, as one step that can be undone; returns the cell. */
function insert(
  { content }: NotebookPanel,
  { kind, replaces }: IProposal,
  { cell, isGone }: IPlace,
  source: string,
  entry: { proposed: Record<string, string | number | boolean> }
): Cell {
  if (cell && replaces && !isGone) {
    const { sharedModel } = cell.model;
    sharedModel.transact(() => {
      sharedModel.setSource(source);
      sharedModel.setMetadata(KEY, entry);
    });
    return cell;
  }
  const index = cell ? content.widgets.indexOf(cell) + 1 : 0;
  content.model!.sharedModel.insertCell(index, {
    cell_type: kind === 'markdown' ? 'markdown' : 'code',
    source,
    metadata: { trusted: true, [KEY]: entry } // as what its user types
  });
  return content.widgets[index];
}
