/** The item of the status bar: always seen, and never in the file. */
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import { describeNotebook } from '../../panel/format';
import { IPanelContext, useClock, useStore } from '../../panel/hooks';
import { StopIcon } from '../../panel/icons';

export class StatusItem extends ReactWidget {
  constructor(
    private readonly _context: IPanelContext,
    private readonly _open: () => void
  ) {
    super();
    this.addClass('jp-mcp-status-item');
  }

  protected render(): JSX.Element {
    return <Item {...this._context} open={this._open} />;
  }
}

function Item(props: IPanelContext & { open: () => void }): JSX.Element | null {
  const { store, trans } = props;
  useStore(store);
  const notebook = store.current;
  const call = notebook?.open_calls?.[0];
  const now = useClock(call !== undefined);
  if (!notebook || notebook.trouble || !store.front) {
    return null;
  }
  const kernel = store.front.kernel;
  const questions = notebook.questions.length + (notebook.proposals ?? []).length;
  return (
    <>
      <button
        className="jp-mcp-link"
        title={trans.__('Show the tools of the notebook')}
        onClick={props.open}
      >
        {describeNotebook(trans, notebook, questions, now)}
      </button>
      {call && (
        <button
          className="jp-mcp-link"
          aria-label={trans.__('Stop %1', call.tool)}
          title={trans.__('Stop %1', call.tool)}
          disabled={call.is_stopping}
          onClick={() => void store.act(kernel, { action: 'stop', call: call.number })}
        >
          <StopIcon />
        </button>
      )}
    </>
  );
}
