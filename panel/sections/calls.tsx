/** The last calls: what was asked, and what came of it; opened, all of it. */
import * as React from 'react';

import { describeState, formatTime } from '../format';
import { ISectionProps } from '../hooks';
import { Caret } from '../icons';
import { ICallDetails, IEndedCall } from '../messages';
import { KindBadge, Section, SmallButton } from './section';

export function CallsSection(props: ISectionProps): JSX.Element {
  const { trans, notebook } = props;
  const more = notebook.number_of_calls - notebook.ended_calls.length;
  return (
    <Section title={trans.__('Last calls')} count={notebook.number_of_calls}>
      {notebook.ended_calls.length === 0 && (
        <p className="jp-mcp-empty">{trans.__('None yet.')}</p>
      )}
      <ul className="jp-mcp-list">
        {notebook.ended_calls.map((call, index, calls) => (
          <React.Fragment key={call.number}>
            {describeOrigin(call) !== describeOrigin(calls[index - 1]) && (
              <li className="jp-mcp-origin">{describeOrigin(call)}</li>
            )}
            <EndedCall {...props} call={call} />
          </React.Fragment>
        ))}
      </ul>
      {more > 0 && (
        <p className="jp-mcp-empty">
          {trans._n('And %1 earlier call: see %2.', 'And %1 earlier calls: see %2.', more, '%mcp log')}
        </p>
      )}
    </Section>
  );
}

/** Say who called, and in which minute: shown where it changes. */
function describeOrigin(call: IEndedCall | undefined): string {
  return call ? `${call.client} · ${formatTime(call.came, 'short')}` : '';
}

function EndedCall(props: ISectionProps & { call: IEndedCall }): JSX.Element {
  const { trans, call } = props;
  const [isOpen, setOpen] = React.useState(false);
  const outcome = describeState(trans, call);
  return (
    <li className="jp-mcp-call">
      <button
        className="jp-mcp-link jp-mcp-row"
        aria-expanded={isOpen}
        title={call.call}
        onClick={() => setOpen(!isOpen)}
      >
        <Caret isOpen={isOpen} />
        <code className={isOpen ? 'jp-mcp-main' : 'jp-mcp-main jp-mcp-lines-3'}>{call.call}</code>
      </button>
      <div className="jp-mcp-outcome jp-mcp-small">
        <KindBadge trans={trans} kind={call.kind} />
        <span className={call.is_error ? 'jp-mcp-side jp-mcp-error' : 'jp-mcp-side'}>
          {outcome}
        </span>
        {isOpen && <span className="jp-mcp-side">{formatTime(call.came)}</span>}
        {!isOpen && call.has_picture && (
          <Picture
            {...props}
            index="thumbnail"
            alt={trans.__('A picture that %1 returned', call.tool)}
          />
        )}
        {!isOpen && call.result && (
          <span className={call.is_error ? 'jp-mcp-result jp-mcp-error' : 'jp-mcp-result'}>
            {call.result}
          </span>
        )}
      </div>
      {isOpen && <Details {...props} />}
    </li>
  );
}

/** A picture of a call's result, or its thumbnail. */
function Picture(
  props: ISectionProps & { call: IEndedCall; index: number | 'thumbnail'; alt: string }
): JSX.Element | null {
  const { store, kernel, notebook, call, index, alt } = props;
  const [url, setUrl] = React.useState('');
  React.useEffect(() => {
    let isShown = true;
    // The kernel cannot make a thumbnail, or no longer has the result.
    store.host.findPicture(kernel, notebook.kernel, call.number, index).then(
      found => isShown && setUrl(found),
      () => undefined
    );
    return () => {
      isShown = false;
    };
  }, [store, kernel, notebook.kernel, call.number, index]);
  if (url === '') {
    return null;
  }
  return index === 'thumbnail' ? (
    <img
      className="jp-mcp-thumbnail"
      loading="lazy"
      onError={event => (event.currentTarget.hidden = true)}
      alt={alt}
      src={url}
    />
  ) : (
    <img alt={alt} src={url} />
  );
}

function Details(props: ISectionProps & { call: IEndedCall }): JSX.Element {
  const { store, trans, actions, kernel, notebook, call } = props;
  const [details, setDetails] = React.useState<ICallDetails | null>(null);
  const [failure, setFailure] = React.useState('');
  React.useEffect(() => {
    let isShown = true;
    store.host.findCall(kernel, call.number).then(
      found => isShown && setDetails(found),
      error => isShown && setFailure(error.message)
    );
    return () => {
      isShown = false;
    };
  }, [store, kernel, call.number]);
  if (details === null) {
    return <p className="jp-mcp-empty">{failure || trans.__('Loading…')}</p>;
  }
  const record = () =>
    void store.host.findCell(kernel, call.number).then(
      cell => {
        if (!actions.insertRecordedCell(kernel, cell)) {
          store.setNote(trans.__('Its notebook is no longer open here.'));
        }
      },
      error => store.setNote(error.message)
    );
  const copy = () => {
    if (details.pictures.length === 0) {
      store.host.copy(details.result);
      return store.setNote(trans.__('The result was copied.'));
    }
    const url = store.host.findPicture(kernel, notebook.kernel, call.number, 0);
    copyPicture(url, details.result).then(
      () => store.setNote(trans.__('The picture was copied.')),
      () => {
        if (details.result) {
          store.host.copy(details.result);
        }
        store.setNote(
          details.result
            ? trans.__('Only the text was copied: the browser did not let the page copy a picture. Copy it with a right click.')
            : trans.__('The browser did not let the page copy a picture: copy it with a right click.')
        );
      }
    );
  };
  return (
    <div className="jp-mcp-details">
      <h4>{trans.__('Arguments')}</h4>
      <pre tabIndex={0}>{details.arguments}</pre>
      <h4>{call.is_error ? trans.__('Error') : trans.__('Result')}</h4>
      {details.pictures.map((_, index) => (
        <Picture
          {...props}
          key={index}
          index={index}
          alt={trans.__('Picture %1 of the result', index + 1)}
        />
      ))}
      {details.result && <pre tabIndex={0}>{details.result}</pre>}
      {!details.is_kept && <p className="jp-mcp-empty">{trans.__('It was not kept.')}</p>}
      <div className="jp-mcp-buttons">
        {(details.result || details.pictures.length > 0) && (
          <SmallButton label={trans.__('Copy the result')} onClick={copy}>
            {trans.__('Copy')}
          </SmallButton>
        )}
        <SmallButton
          label={trans.__('Insert as cell')}
          onClick={() => actions.insertCell(details.source)}
        />
        {!details.gap && (
          <SmallButton
            label={trans.__('Run again')}
            title={trans.__('Insert the call as a cell, and run it')}
            onClick={() => actions.insertCell(details.source, { run: true })}
          />
        )}
        <SmallButton
          label={trans.__('Record')}
          title={trans.__('Insert the call as a cell, with its result')}
          onClick={record}
        />
      </div>
      {details.gap && (
        <p className="jp-mcp-small">
          {details.gap === 'secret'
            ? trans.__('A secret argument was not recorded, so the call cannot run again as it was. Insert it as a cell, put your secret in, and run the cell.')
            : trans.__('A large argument was not kept, so the call cannot run again as it was. Insert it as a cell, put the argument in, and run the cell.')}
        </p>
      )}
    </div>
  );
}

/** Copy a picture as PNG, which is what clipboards take, and the text that came with it. */
async function copyPicture(url: Promise<string>, text: string): Promise<void> {
  const encode = async () => {
    const bitmap = await createImageBitmap(await (await fetch(await url)).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext('2d')?.drawImage(bitmap, 0, 0);
    return canvas.convertToBlob();
  };
  const words: Record<string, Blob> = text ? { 'text/plain': new Blob([text], { type: 'text/plain' }) } : {};
  // The promise comes with the click: later, Safari would not take a picture any more.
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': encode(), ...words })]);
}
