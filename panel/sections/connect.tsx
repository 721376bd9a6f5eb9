/** Connects an assistant: on this computer by a click, on another one by lines to copy. */
import * as React from 'react';

import { formatTime } from '../format';
import { IPanelContext } from '../hooks';
import { IFoundClient, IMachineClients } from '../messages';
import { CopyBlock, SmallButton } from './section';

const TOKEN_FILE = 'notebook.token';
/** Stands for the token where it is not shown. */
const TOKEN = 'TOKEN';
/** What a shell takes as it is. */
const PLAIN = /^[\w:/.%@+=~-]+$/;

export function ConnectSection(props: IPanelContext & { isLit: boolean }): JSX.Element {
  const { trans, isLit } = props;
  const [isOpen, setOpen] = React.useState(false);
  const id = React.useId();
  return (
    <section className="jp-mcp-connect" aria-label={trans.__('Connect an assistant')}>
      <button
        className={isLit ? 'jp-mcp-connect-button jp-mcp-lit' : 'jp-mcp-connect-button'}
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {trans.__('Connect an assistant')}
      </button>
      <div id={id}>{isOpen && <Clients {...props} />}</div>
    </section>
  );
}

function Clients(props: IPanelContext): JSX.Element {
  const { store, trans } = props;
  const [found, setFound] = React.useState<IMachineClients | null>(null);
  const [failure, setFailure] = React.useState('');
  const read = React.useCallback(() => {
    store.host.findClients().then(setFound, error => setFailure(error.message));
  }, [store]);
  React.useEffect(read, [read]);
  if (found === null) {
    return <p className="jp-mcp-empty">{failure || trans.__('Loading…')}</p>;
  }
  return found.place === 'local' ? (
    <LocalClients {...props} found={found} read={read} />
  ) : (
    <RemoteLines {...props} found={found} />
  );
}

type IFoundProps = IPanelContext & { found: IMachineClients };

function LocalClients(props: IFoundProps & { read: () => void }): JSX.Element {
  const { trans, found } = props;
  const there = found.clients.filter(client => client.is_found);
  const missing = found.clients.filter(client => !client.is_found);
  return (
    <div className="jp-mcp-body">
      <p>
        {there.length > 0
          ? trans.__('Found on this computer (%1):', found.machine)
          : trans.__('No assistant that can be set up here was found on this computer (%1).', found.machine)}
      </p>
      <ul className="jp-mcp-list">
        {there.map(client => (
          <LocalClient {...props} key={client.name} client={client} />
        ))}
        <OtherClient {...props} lines={found.lines ?? ''} />
      </ul>
      {missing.length > 0 && (
        <p className="jp-mcp-empty">
          {trans.__('Not found: %1.', missing.map(client => client.title).join(', '))}
        </p>
      )}
    </div>
  );
}

/** Any other program: the entry that most of them read. */
function OtherClient({ store, trans, lines }: IPanelContext & { lines: string }): JSX.Element {
  const [showsLines, setShowsLines] = React.useState(false);
  return (
    <li className="jp-mcp-call">
      <div className="jp-mcp-row">
        <strong className="jp-mcp-main">{trans.__('Another assistant')}</strong>
        <SmallButton
          label={trans.__('Lines for another assistant')}
          expanded={showsLines}
          onClick={() => setShowsLines(!showsLines)}
        >
          {trans.__('Lines')}
        </SmallButton>
      </div>
      {showsLines && (
        <div className="jp-mcp-small">
          <p>{trans.__('Paste this into its settings for MCP servers.')}</p>
          <CopyBlock
            text={lines}
            host={store.host}
            copy={trans.__('Copy the lines')}
            onCopied={() => store.setNote(trans.__('The lines were copied.'))}
          />
        </div>
      )}
    </li>
  );
}

function LocalClient(
  props: IPanelContext & { client: IFoundClient; read: () => void }
): JSX.Element {
  const { store, trans, client, read } = props;
  const [showsLines, setShowsLines] = React.useState(client.state === 'paste');
  const [isBusy, setBusy] = React.useState(false);
  const connect = (replace: boolean) => {
    setBusy(true);
    void store.host
      .connectClient(client.name, replace)
      .then(
        message => store.setNote(message),
        error => store.setNote(error.message)
      )
      .then(() => {
        setBusy(false);
        read();
      });
  };
  return (
    <li className="jp-mcp-call">
      <div className="jp-mcp-row">
        <strong className="jp-mcp-main">{client.title}</strong>
        {client.state === 'none' && (
          <SmallButton
            kind="accept"
            label={trans.__('Set up %1', client.title)}
            title={trans.__('Write the entry into %1', client.file)}
            disabled={isBusy}
            onClick={() => connect(false)}
          >
            {trans.__('Set up')}
          </SmallButton>
        )}
        {client.state === 'other' && (
          <SmallButton
            label={trans.__('Replace the entry of %1', client.title)}
            title={trans.__('Replace the entry in %1', client.file)}
            disabled={isBusy}
            onClick={() => connect(true)}
          >
            {trans.__('Replace')}
          </SmallButton>
        )}
        <SmallButton
          label={trans.__('Lines for %1', client.title)}
          expanded={showsLines}
          onClick={() => setShowsLines(!showsLines)}
        >
          {trans.__('Lines')}
        </SmallButton>
      </div>
      {client.state === 'connected' && (
        <p className="jp-mcp-small">{describeConnected(props)}</p>
      )}
      {client.state === 'other' && (
        <p className="jp-mcp-small">
          {trans.__('Its settings start mcp-notebook from another environment, or have another server with this name.')}
        </p>
      )}
      {client.problem && <p className="jp-mcp-small jp-mcp-error">{client.problem}</p>}
      {showsLines && (
        <div className="jp-mcp-small">
          <p>{trans.__('Paste this into %1.', client.file)}</p>
          <CopyBlock
            text={client.text}
            host={store.host}
            copy={trans.__('Copy the lines')}
            onCopied={() => store.setNote(trans.__('The lines were copied.'))}
          />
          {client.steps.map(step => (
            <p key={step}>{step}</p>
          ))}
        </div>
      )}
    </li>
  );
}

/** Say what became of a client that was set up. */
function describeConnected({ store, trans, client }: IPanelContext & { client: IFoundClient }): string {
  const { title, program } = client;
  const last = program ? store.findLastSeen(program) : 0;
  return last
    ? trans.__('%1 is set up; last seen %2.', title, formatTime(last, 'short'))
    : program
      ? trans.__('%1 is set up; no notebook has seen it yet.', title)
      : trans.__('%1 is set up.', title);
}

function RemoteLines(props: IFoundProps): JSX.Element {
  const { store, trans, found } = props;
  const [name, setName] = React.useState(found.clients[0].name);
  const url = store.host.server?.url ?? '';
  const settings = formatSettings(found.place, url);
  // On a Hub, the page's token is the server's own, which may do more than an assistant has to.
  const token = found.place === 'JupyterHub' ? '' : (store.host.server?.token ?? '');
  const line = `mcp-notebook install ${name} --url ${quote(url)} --token-file ${TOKEN_FILE}`;
  const id = React.useId();
  return (
    <div className="jp-mcp-body">
      <p>
        {trans.__('The notebook runs on another computer than this page. Your assistant reaches it with three steps:')}
      </p>
      <ol className="jp-mcp-steps">
        <li>
          {token === '' && <Token {...props} />}
          {token === '' ? trans.__('Copy these settings, and replace %1 by it:', TOKEN) : trans.__('Copy these settings:')}
          <CopyBlock
            text={settings}
            copied={token === '' ? settings : settings.replace(TOKEN, () => token)}
            host={store.host}
            copy={token === '' ? trans.__('Copy the settings') : trans.__('Copy the settings with the token')}
            onCopied={() => store.setNote(trans.__('The settings were copied.'))}
          />
        </li>
        <li>
          {trans.__('Paste them into the file %1 of a new folder on your computer, or into the settings of your assistant. They are secret: the token is in them.', '.mcp.json')}
        </li>
        <li>{trans.__('Start your assistant in that folder, and ask it.')}</li>
      </ol>
      <p>
        <label htmlFor={id}>
          {trans.__('An assistant that only starts commands needs mcp-notebook on your computer, and the token in a file that only you can read, here %1:', TOKEN_FILE)}
        </label>{' '}
        <select
          id={id}
          className="jp-mod-styled"
          value={name}
          onChange={event => setName(event.target.value)}
        >
          {found.clients.map(client => (
            <option key={client.name} value={client.name}>
              {client.title}
            </option>
          ))}
        </select>
      </p>
      <CopyBlock
        text={line}
        host={store.host}
        copy={trans.__('Copy the line')}
        onCopied={() => store.setNote(trans.__('The line was copied.'))}
      />
    </div>
  );
}

/** The settings that the notebook's own card shows, too. */
function formatSettings(place: string, url: string): string {
  const headers = { Authorization: `Bearer ${TOKEN}` };
  const name = place === 'remote' ? 'notebook' : place.toLowerCase();
  return JSON.stringify({ mcpServers: { [name]: { type: 'http', url, headers } } }, null, 1);
}

/** Say where the token is that lets an assistant in, if the page does not have it. */
function Token({ store, trans, found }: IFoundProps): JSX.Element {
  if (found.place === 'JupyterHub') {
    return (
      <>
        <a href={store.host.server?.tokenPage} target="_blank" rel="noreferrer">
          {trans.__('Make a token on the page of the JupyterHub.')}
        </a>{' '}
      </>
    );
  }
  return (
    <>
      {trans.__('Take the token of this Jupyter server, which %1 in a terminal here shows.', 'jupyter server list')}{' '}
    </>
  );
}

function quote(text: string): string {
  return PLAIN.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
