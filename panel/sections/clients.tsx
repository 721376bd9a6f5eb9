/** The clients that are connected to the notebook. */
import * as React from 'react';

import { formatTime } from '../format';
import { ISectionProps } from '../hooks';
import { Section } from './section';

export function ClientsSection({ trans, notebook }: ISectionProps): JSX.Element {
  const clients = notebook.clients;
  return (
    <Section
      title={trans.__('Clients')}
      count={clients.reduce((sum, client) => sum + client.number, 0)}
    >
      {clients.length === 0 && <p className="jp-mcp-empty">{trans.__('None is connected.')}</p>}
      <ul className="jp-mcp-list">
        {clients.map(client => (
          <li className="jp-mcp-row" key={client.name}>
            <span className="jp-mcp-main" title={client.name}>
              {client.name}
            </span>
            <span className="jp-mcp-side">
              {client.number > 1 && `${client.number} × `}
              {trans.__('since %1', formatTime(client.since))}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
